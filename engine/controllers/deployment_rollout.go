package controllers

import (
	"fmt"
	"reflect"
	"sort"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "k8s.io/kubernetes/pkg/controller"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"

	"podwalk/engine/stage"
	"podwalk/engine/trace"
)

// rolling replaces Pods step by step: scale the new ReplicaSet up as far as maxSurge
// allows, else the old ones down as far as maxUnavailable allows.
func (s *rollout) rolling(rss []*appsv1.ReplicaSet) error {
	newRS, old, err := s.revisions(rss, true)
	if err != nil {
		return err
	}
	all := append(old[:len(old):len(old)], newRS)
	scaled, err := s.scaleUpNew(all, newRS)
	if err != nil {
		return err
	}
	if !scaled {
		scaled, err = s.scaleDownOld(all, upstream.FilterActiveReplicaSets(old), newRS)
		if err != nil {
			return err
		}
	}
	if !scaled && deploymentutil.DeploymentComplete(s.d, &s.d.Status) {
		if err := s.cleanup(old); err != nil {
			return err
		}
	}
	return s.rolloutStatus(all, newRS)
}

func (s *rollout) scaleUpNew(all []*appsv1.ReplicaSet, newRS *appsv1.ReplicaSet) (bool, error) {
	have, want := *newRS.Spec.Replicas, *s.d.Spec.Replicas
	if have == want {
		return false, nil
	}
	if have < want {
		n, err := deploymentutil.NewRSNewReplicas(s.d, all, newRS)
		if err != nil {
			return false, err
		}
		want = n
	}
	scaled, _, err := s.scaleReplicaSet(newRS, want, false)
	return scaled, err
}

func (s *rollout) scaleDownOld(all, old []*appsv1.ReplicaSet, newRS *appsv1.ReplicaSet) (bool, error) {
	if deploymentutil.GetReplicaCountForReplicaSets(old) == 0 {
		return false, nil
	}
	least := *s.d.Spec.Replicas - deploymentutil.MaxUnavailable(*s.d)
	unavailable := *newRS.Spec.Replicas - newRS.Status.AvailableReplicas
	most := deploymentutil.GetReplicaCountForReplicaSets(all) - least - unavailable
	if most <= 0 {
		return false, nil
	}
	// Unhealthy replicas go first: they do not add to what is available anyway. As
	// upstream, an error here only means that nothing was scaled; the sync goes on.
	old, cleaned, err := s.scaleDownUnhealthy(old, most)
	if err != nil {
		return false, nil
	}
	down, err := s.scaleDownAvailable(append(old[:len(old):len(old)], newRS), old)
	if err != nil {
		return false, nil
	}
	return cleaned+down > 0, nil
}

func (s *rollout) scaleDownUnhealthy(old []*appsv1.ReplicaSet, most int32) ([]*appsv1.ReplicaSet, int32, error) {
	sort.Sort(upstream.ReplicaSetsByCreationTimestamp(old))
	total := int32(0)
	for i, rs := range old {
		have := *rs.Spec.Replicas
		if total >= most {
			break
		}
		if have == 0 || have == rs.Status.AvailableReplicas {
			continue
		}
		n := min(most-total, have-rs.Status.AvailableReplicas)
		_, updated, err := s.scaleReplicaSet(rs, have-n, false)
		if err != nil {
			return nil, total, err
		}
		total += n
		old[i] = updated
	}
	return old, total, nil
}

func (s *rollout) scaleDownAvailable(all, old []*appsv1.ReplicaSet) (int32, error) {
	least := *s.d.Spec.Replicas - deploymentutil.MaxUnavailable(*s.d)
	spare := deploymentutil.GetAvailableReplicaCountForReplicaSets(all) - least
	if spare <= 0 {
		return 0, nil
	}
	sort.Sort(upstream.ReplicaSetsByCreationTimestamp(old))
	total := int32(0)
	for _, rs := range old {
		if total >= spare {
			break
		}
		have := *rs.Spec.Replicas
		if have == 0 {
			continue
		}
		n := min(have, spare-total)
		if _, _, err := s.scaleReplicaSet(rs, have-n, false); err != nil {
			return total, err
		}
		total += n
	}
	return total, nil
}

// recreate takes all old Pods down before it starts new ones.
func (s *rollout) recreate(rss []*appsv1.ReplicaSet, pods map[types.UID][]*corev1.Pod) error {
	newRS, old, err := s.revisions(rss, false)
	if err != nil {
		return err
	}
	all := append(old[:len(old):len(old)], newRS)
	down := false
	for _, rs := range upstream.FilterActiveReplicaSets(old) {
		scaled, _, err := s.scaleReplicaSet(rs, 0, false)
		if err != nil {
			return err
		}
		down = down || scaled
	}
	if down || oldPodsRunning(newRS, old, pods) {
		return s.rolloutStatus(all, newRS)
	}
	if newRS == nil {
		if newRS, old, err = s.revisions(rss, true); err != nil {
			return err
		}
		all = append(old[:len(old):len(old)], newRS)
	}
	if _, _, err := s.scaleReplicaSet(newRS, *s.d.Spec.Replicas, false); err != nil {
		return err
	}
	if deploymentutil.DeploymentComplete(s.d, &s.d.Status) {
		if err := s.cleanup(old); err != nil {
			return err
		}
	}
	return s.rolloutStatus(all, newRS)
}

func oldPodsRunning(newRS *appsv1.ReplicaSet, old []*appsv1.ReplicaSet, pods map[types.UID][]*corev1.Pod) bool {
	if deploymentutil.GetActualReplicaCountForReplicaSets(old) > 0 {
		return true
	}
	for uid, list := range pods {
		if newRS != nil && newRS.UID == uid {
			continue
		}
		for _, p := range list {
			if p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded {
				return true
			}
		}
	}
	return false
}

// calculateStatus counts over the ReplicaSets' own statuses.
func (s *rollout) calculateStatus(all []*appsv1.ReplicaSet, newRS *appsv1.ReplicaSet) appsv1.DeploymentStatus {
	d := s.d
	available := deploymentutil.GetAvailableReplicaCountForReplicaSets(all)
	status := appsv1.DeploymentStatus{
		ObservedGeneration:  d.Generation,
		Replicas:            deploymentutil.GetActualReplicaCountForReplicaSets(all),
		UpdatedReplicas:     deploymentutil.GetActualReplicaCountForReplicaSets([]*appsv1.ReplicaSet{newRS}),
		ReadyReplicas:       deploymentutil.GetReadyReplicaCountForReplicaSets(all),
		AvailableReplicas:   available,
		UnavailableReplicas: max(0, deploymentutil.GetReplicaCountForReplicaSets(all)-available),
		TerminatingReplicas: deploymentutil.GetTerminatingReplicaCountForReplicaSets(all),
		CollisionCount:      d.Status.CollisionCount,
		Conditions:          append([]appsv1.DeploymentCondition(nil), d.Status.Conditions...),
	}
	if available >= *d.Spec.Replicas-deploymentutil.MaxUnavailable(*d) {
		deploymentutil.SetDeploymentCondition(&status, s.condition(appsv1.DeploymentAvailable, corev1.ConditionTrue,
			deploymentutil.MinimumReplicasAvailable, "Deployment has minimum availability."))
	} else {
		deploymentutil.SetDeploymentCondition(&status, s.condition(appsv1.DeploymentAvailable, corev1.ConditionFalse,
			deploymentutil.MinimumReplicasUnavailable, "Deployment does not have minimum availability."))
	}
	return status
}

// rolloutStatus writes the status, with what it says about progress.
func (s *rollout) rolloutStatus(all []*appsv1.ReplicaSet, newRS *appsv1.ReplicaSet) error {
	d := s.d
	status := s.calculateStatus(all, newRS)
	if !deploymentutil.HasProgressDeadline(d) {
		deploymentutil.RemoveDeploymentCondition(&status, appsv1.DeploymentProgressing)
	}
	current := deploymentutil.GetDeploymentCondition(d.Status, appsv1.DeploymentProgressing)
	complete := status.Replicas == status.UpdatedReplicas && current != nil && current.Reason == deploymentutil.NewRSAvailableReason
	if deploymentutil.HasProgressDeadline(d) && !complete {
		s.progress(&status, current, newRS)
	}
	if failed := replicaFailure(all, newRS); failed != nil {
		deploymentutil.SetDeploymentCondition(&status, *failed)
	} else {
		deploymentutil.RemoveDeploymentCondition(&status, appsv1.DeploymentReplicaFailure)
	}
	if reflect.DeepEqual(d.Status, status) {
		s.requeueStuck(status)
		return nil
	}
	before := d.Status
	d.Status = status
	if _, err := s.writeStatus(); err != nil {
		return err
	}
	s.tell(before, status)
	return nil
}

func (s *rollout) progress(status *appsv1.DeploymentStatus, current *appsv1.DeploymentCondition, newRS *appsv1.ReplicaSet) {
	who := fmt.Sprintf("Deployment %q", s.d.Name)
	if newRS != nil {
		who = fmt.Sprintf("ReplicaSet %q", newRS.Name)
	}
	switch {
	case deploymentutil.DeploymentComplete(s.d, status):
		deploymentutil.SetDeploymentCondition(status, s.condition(appsv1.DeploymentProgressing, corev1.ConditionTrue,
			deploymentutil.NewRSAvailableReason, who+" has successfully progressed."))
	case deploymentutil.DeploymentProgressing(s.d, status):
		cond := s.condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, deploymentutil.ReplicaSetUpdatedReason, who+" is progressing.")
		if current != nil {
			if current.Status == corev1.ConditionTrue {
				cond.LastTransitionTime = current.LastTransitionTime
			}
			deploymentutil.RemoveDeploymentCondition(status, appsv1.DeploymentProgressing)
		}
		deploymentutil.SetDeploymentCondition(status, cond)
	case s.timedOut(status):
		deploymentutil.SetDeploymentCondition(status, s.condition(appsv1.DeploymentProgressing, corev1.ConditionFalse,
			deploymentutil.TimedOutReason, who+" has timed out progressing."))
	}
}

// timedOut is upstream's DeploymentTimedOut on the simulated clock.
func (s *rollout) timedOut(status *appsv1.DeploymentStatus) bool {
	cond := deploymentutil.GetDeploymentCondition(*status, appsv1.DeploymentProgressing)
	switch {
	case cond == nil || cond.Reason == deploymentutil.NewRSAvailableReason:
		return false
	case cond.Reason == deploymentutil.TimedOutReason:
		return true
	}
	return s.deadline(*cond).Before(s.state.Started.Wall())
}

func replicaFailure(all []*appsv1.ReplicaSet, newRS *appsv1.ReplicaSet) *appsv1.DeploymentCondition {
	for _, rs := range append([]*appsv1.ReplicaSet{newRS}, all...) {
		if rs == nil {
			continue
		}
		for _, c := range rs.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				cond := deploymentutil.ReplicaSetToDeploymentCondition(c)
				return &cond
			}
		}
	}
	return nil
}

// tell records a hop when a condition of the Deployment turns.
func (s *rollout) tell(before, after appsv1.DeploymentStatus) {
	for _, c := range after.Conditions {
		was := deploymentutil.GetDeploymentCondition(before, c.Type)
		if was != nil && was.Status == c.Status && was.Reason == c.Reason ||
			was == nil && c.Status == corev1.ConditionFalse || c.Reason == deploymentutil.ReplicaSetUpdatedReason {
			continue // nothing that the ReplicaSet's own hops have not told
		}
		outcome := trace.OK
		switch {
		case c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue,
			c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse:
			outcome = trace.Retry // the cause is told by the hop of the Pod that failed
		case c.Status == corev1.ConditionFalse:
			outcome = trace.Waiting
		}
		s.hop(trace.Hop{
			Stage: stage.Controllers, From: component, To: stage.APIServer,
			Verb: fmt.Sprintf("condition %s=%s", c.Type, c.Status), Object: ref("Deployment", s.d),
			Outcome: outcome, Reason: c.Reason, Message: c.Message,
		})
	}
}

// rollback puts back the template of an older revision, as the annotation of the
// extensions/v1beta1 rollback asks. kubectl rollout undo does not use it.
func (s *rollout) rollback(rss []*appsv1.ReplicaSet) error {
	newRS, old, err := s.revisions(rss, true)
	if err != nil {
		return err
	}
	all := append(old[:len(old):len(old)], newRS)
	d, wanted := s.d, *rollbackTo(s.d)
	if wanted == 0 {
		wanted = deploymentutil.LastRevision(silent, all)
	}
	reason, message, eventType := deploymentutil.RollbackRevisionNotFound, "Unable to find the revision to rollback to.", corev1.EventTypeWarning
	if wanted == 0 {
		message = "Unable to find last revision."
	}
	for _, rs := range all {
		v, err := deploymentutil.Revision(rs)
		if err != nil || v != wanted || wanted == 0 {
			continue
		}
		reason, message = deploymentutil.RollbackTemplateUnchanged, fmt.Sprintf("The rollback revision contains the same template as current deployment %q", d.Name)
		if !deploymentutil.EqualIgnoreHash(&d.Spec.Template, &rs.Spec.Template) {
			deploymentutil.SetFromReplicaSetTemplate(d, rs.Spec.Template)
			deploymentutil.SetDeploymentAnnotationsTo(d, rs)
			reason, message, eventType = deploymentutil.RollbackDone, fmt.Sprintf("Rolled back deployment %q to revision %d", d.Name, wanted), corev1.EventTypeNormal
		}
		break
	}
	s.event(d, eventType, reason, message)
	delete(d.Annotations, appsv1.DeprecatedRollbackTo)
	_, err = s.do(update(d.DeepCopy()))
	return err
}
