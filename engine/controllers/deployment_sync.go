package controllers

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	upstream "k8s.io/kubernetes/pkg/controller"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
	labelsutil "k8s.io/kubernetes/pkg/util/labels"

	"podwalk/engine/kube"
	"podwalk/engine/trace"
)

// revisionHistoryChars is upstream's limit of the revision-history annotation.
const revisionHistoryChars = 2000

// revisions returns the new ReplicaSet (nil where there is none and create is false) and
// all old ones, with their revision annotations brought up to date.
func (s *rollout) revisions(rss []*appsv1.ReplicaSet, create bool) (*appsv1.ReplicaSet, []*appsv1.ReplicaSet, error) {
	_, old := deploymentutil.FindOldReplicaSets(s.d, rss)
	newRS, err := s.newReplicaSet(rss, old, create)
	return newRS, old, err
}

func (s *rollout) newReplicaSet(rss, old []*appsv1.ReplicaSet, createIt bool) (*appsv1.ReplicaSet, error) {
	revision := strconv.FormatInt(deploymentutil.MaxRevision(silent, old)+1, 10)
	if existing := deploymentutil.FindNewReplicaSet(s.d, rss); existing != nil {
		return s.keepReplicaSet(existing, revision)
	}
	if !createIt {
		return nil, nil
	}
	return s.createReplicaSet(old, revision)
}

// keepReplicaSet brings the annotations of the ReplicaSet for the current template up to
// date.
func (s *rollout) keepReplicaSet(existing *appsv1.ReplicaSet, revision string) (*appsv1.ReplicaSet, error) {
	d, rs := s.d, existing.DeepCopy()
	annotated := deploymentutil.SetNewReplicaSetAnnotations(quietCtx, d, rs, revision, true, revisionHistoryChars)
	if annotated || rs.Spec.MinReadySeconds != d.Spec.MinReadySeconds {
		rs.Spec.MinReadySeconds = d.Spec.MinReadySeconds
		ans, err := s.do(update(rs))
		if err != nil {
			return nil, err
		}
		return ans.Object.(*appsv1.ReplicaSet), nil
	}
	changed := deploymentutil.SetDeploymentRevision(d, rs.Annotations[deploymentutil.RevisionAnnotation])
	cond := deploymentutil.GetDeploymentCondition(d.Status, appsv1.DeploymentProgressing)
	if deploymentutil.HasProgressDeadline(d) && cond == nil {
		deploymentutil.SetDeploymentCondition(&d.Status, s.condition(appsv1.DeploymentProgressing, corev1.ConditionTrue,
			deploymentutil.FoundNewRSReason, fmt.Sprintf("Found new replica set %q", rs.Name)))
		changed = true
	}
	if changed {
		if _, err := s.writeStatus(); err != nil {
			return nil, err
		}
	}
	return rs, nil
}

// templateReplicaSet is the ReplicaSet for the Deployment's template as it is created.
func (s *rollout) templateReplicaSet(old []*appsv1.ReplicaSet, revision string) (*appsv1.ReplicaSet, error) {
	d := s.d
	template := *d.Spec.Template.DeepCopy()
	hash := upstream.ComputeHash(&template, d.Status.CollisionCount)
	template.Labels = labelsutil.CloneAndAddLabel(d.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: replicaSetName(d.Name, hash), Namespace: d.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, deploymentKind)},
			Labels:          template.Labels,
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32), MinReadySeconds: d.Spec.MinReadySeconds, Template: template,
			Selector: labelsutil.CloneSelectorAndAddLabel(d.Spec.Selector, appsv1.DefaultDeploymentUniqueLabelKey, hash),
		},
	}
	n, err := deploymentutil.NewRSNewReplicas(d, append(old[:len(old):len(old)], rs), rs)
	if err != nil {
		return nil, err
	}
	*rs.Spec.Replicas = n
	deploymentutil.SetNewReplicaSetAnnotations(quietCtx, d, rs, revision, false, revisionHistoryChars)
	return rs, nil
}

func (s *rollout) createReplicaSet(old []*appsv1.ReplicaSet, revision string) (*appsv1.ReplicaSet, error) {
	d := s.d
	rs, err := s.templateReplicaSet(old, revision)
	if err != nil {
		return nil, err
	}
	n := *rs.Spec.Replicas
	s.hop(trace.Hop{
		Verb: fmt.Sprintf("reconcile Deployment %s", d.Name), Object: ref("Deployment", d),
		Message: fmt.Sprintf("Deployment %s wants %s and no ReplicaSet has its Pod template (revision %s): create ReplicaSet %s with %s",
			d.Name, count(int(*d.Spec.Replicas), "replica"), revision, rs.Name, count(int(n), "replica")),
	})
	ans, err := s.do(create(rs.DeepCopy()))
	switch {
	case apierrors.IsAlreadyExists(err):
		return s.nameTaken(rs, revision, err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil, err
	case err != nil:
		message := fmt.Sprintf("Failed to create new replica set %q: %v", rs.Name, err)
		if deploymentutil.HasProgressDeadline(d) {
			deploymentutil.SetDeploymentCondition(&d.Status, s.condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, deploymentutil.FailedRSCreateReason, message))
			_, _ = s.writeStatus() // the failed creation is the error to report
		}
		s.event(d, corev1.EventTypeWarning, deploymentutil.FailedRSCreateReason, message)
		return nil, err
	}
	created := ans.Object.(*appsv1.ReplicaSet)
	if n > 0 {
		s.event(d, corev1.EventTypeNormal, "ScalingReplicaSet", fmt.Sprintf("Scaled up replica set %s from 0 to %d", created.Name, n))
	}
	return created, s.noteNew(created, revision, true)
}

func (s *rollout) noteNew(rs *appsv1.ReplicaSet, revision string, fresh bool) error {
	changed := deploymentutil.SetDeploymentRevision(s.d, revision)
	if fresh && deploymentutil.HasProgressDeadline(s.d) {
		deploymentutil.SetDeploymentCondition(&s.d.Status, s.condition(appsv1.DeploymentProgressing, corev1.ConditionTrue,
			deploymentutil.NewReplicaSetReason, fmt.Sprintf("Created new replica set %q", rs.Name)))
		changed = true
	}
	if !changed {
		return nil
	}
	_, err := s.writeStatus()
	return err
}

// nameTaken deals with a ReplicaSet of the wanted name that the cache did not show: it
// may be ours, or the hashes of two templates collided.
func (s *rollout) nameTaken(rs *appsv1.ReplicaSet, revision string, taken error) (*appsv1.ReplicaSet, error) {
	ans, err := s.do(get(kube.ReplicaSets, rs.Namespace, rs.Name))
	if err != nil {
		return nil, err
	}
	there := ans.Object.(*appsv1.ReplicaSet)
	owner := metav1.GetControllerOf(there)
	if owner != nil && owner.UID == s.d.UID && deploymentutil.EqualIgnoreHash(&s.d.Spec.Template, &there.Spec.Template) {
		return there, s.noteNew(there, revision, false)
	}
	if s.d.Status.CollisionCount == nil {
		s.d.Status.CollisionCount = new(int32)
	}
	*s.d.Status.CollisionCount++
	_, _ = s.writeStatus() // with the next try the name is another one
	return nil, taken
}

func replicaSetName(deployment, hash string) string {
	if longest := validation.DNS1123SubdomainMaxLength - 1 - len(hash); len(deployment) > longest && longest > 0 {
		deployment = deployment[:longest]
	}
	return deployment + "-" + hash
}

// isScalingEvent reports whether somebody changed spec.replicas since the ReplicaSets
// were last annotated.
func (s *rollout) isScalingEvent(rss []*appsv1.ReplicaSet) (bool, error) {
	newRS, old, err := s.revisions(rss, false)
	if err != nil {
		return false, err
	}
	for _, rs := range upstream.FilterActiveReplicaSets(append(old, newRS)) {
		if desired, ok := deploymentutil.GetDesiredReplicasAnnotation(silent, rs); ok && desired != *s.d.Spec.Replicas {
			return true, nil
		}
	}
	return false, nil
}

// syncScale handles scaling and paused Deployments.
func (s *rollout) syncScale(rss []*appsv1.ReplicaSet) error {
	newRS, old, err := s.revisions(rss, false)
	if err != nil {
		return err
	}
	if err := s.scale(newRS, old); err != nil {
		return err
	}
	if s.d.Spec.Paused && rollbackTo(s.d) == nil {
		if err := s.cleanup(old); err != nil {
			return err
		}
	}
	return s.syncStatus(append(old, newRS), newRS)
}

func (s *rollout) scale(newRS *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) error {
	d := s.d
	if one := deploymentutil.FindActiveOrLatest(newRS, old); one != nil {
		_, _, err := s.scaleReplicaSet(one, *d.Spec.Replicas, false)
		return err
	}
	if deploymentutil.IsSaturated(d, newRS) {
		for _, rs := range upstream.FilterActiveReplicaSets(old) {
			if _, _, err := s.scaleReplicaSet(rs, 0, false); err != nil {
				return err
			}
		}
		return nil
	}
	if !deploymentutil.IsRollingUpdate(d) {
		return nil
	}
	return s.scaleProportionally(upstream.FilterActiveReplicaSets(append(old, newRS)))
}

// scaleProportionally spreads a change of spec.replicas in the middle of a rollout over
// the ReplicaSets by their sizes.
func (s *rollout) scaleProportionally(rss []*appsv1.ReplicaSet) error {
	d := s.d
	allowed := int32(0)
	if *d.Spec.Replicas > 0 {
		allowed = *d.Spec.Replicas + deploymentutil.MaxSurge(*d)
	}
	toAdd := allowed - deploymentutil.GetReplicaCountForReplicaSets(rss)
	switch {
	case toAdd > 0:
		sort.Sort(upstream.ReplicaSetsBySizeNewer(rss))
	case toAdd < 0:
		sort.Sort(upstream.ReplicaSetsBySizeOlder(rss))
	}
	added := int32(0)
	size := make([]int32, len(rss))
	for i, rs := range rss {
		size[i] = *rs.Spec.Replicas
		if toAdd != 0 {
			share := deploymentutil.GetReplicaSetProportion(silent, rs, *d, toAdd, added)
			size[i] += share
			added += share
		}
	}
	for i, rs := range rss {
		if i == 0 && toAdd != 0 {
			size[i] = max(0, size[i]+toAdd-added)
		}
		if _, _, err := s.scaleReplicaSet(rs, size[i], true); err != nil {
			return err
		}
	}
	return nil
}

// scaleReplicaSet sets a ReplicaSet's replicas and the annotations that remember what
// the Deployment wanted.
func (s *rollout) scaleReplicaSet(rs *appsv1.ReplicaSet, to int32, force bool) (bool, *appsv1.ReplicaSet, error) {
	d, from := s.d, *rs.Spec.Replicas
	if !force && from == to {
		return false, rs, nil
	}
	most := *d.Spec.Replicas + deploymentutil.MaxSurge(*d)
	if from == to && !deploymentutil.ReplicasAnnotationsNeedUpdate(rs, *d.Spec.Replicas, most) {
		return false, rs, nil
	}
	scaled := rs.DeepCopy()
	*scaled.Spec.Replicas = to
	deploymentutil.SetReplicasAnnotations(scaled, *d.Spec.Replicas, most)
	if from != to {
		s.hop(trace.Hop{
			Verb: fmt.Sprintf("reconcile ReplicaSet %s %d→%d", rs.Name, from, to), Object: ref("Deployment", d),
			Message: fmt.Sprintf("Deployment %s wants %s (at most %s, at least %d available during a rollout); ReplicaSet %s has %d, %d of them available: set it to %d",
				d.Name, count(int(*d.Spec.Replicas), "replica"), count(int(most), "Pod"), *d.Spec.Replicas-deploymentutil.MaxUnavailable(*d), rs.Name, from, rs.Status.AvailableReplicas, to),
		})
	}
	ans, err := s.do(update(scaled))
	if err != nil {
		return false, nil, err
	}
	if from == to {
		return false, ans.Object.(*appsv1.ReplicaSet), nil
	}
	direction := "down"
	if from < to {
		direction = "up"
	}
	s.event(d, corev1.EventTypeNormal, "ScalingReplicaSet", fmt.Sprintf("Scaled %s replica set %s from %d to %d", direction, rs.Name, from, to))
	return true, ans.Object.(*appsv1.ReplicaSet), nil
}

// cleanup deletes old ReplicaSets beyond spec.revisionHistoryLimit.
func (s *rollout) cleanup(old []*appsv1.ReplicaSet) error {
	if !deploymentutil.HasRevisionHistoryLimit(s.d) {
		return nil
	}
	alive := upstream.FilterReplicaSets(old, func(rs *appsv1.ReplicaSet) bool { return rs != nil && rs.DeletionTimestamp == nil })
	excess := len(alive) - int(*s.d.Spec.RevisionHistoryLimit)
	if excess <= 0 {
		return nil
	}
	sort.Sort(deploymentutil.ReplicaSetsByRevision(alive))
	for _, rs := range alive[:excess] {
		if rs.Status.Replicas != 0 || *rs.Spec.Replicas != 0 || rs.Generation > rs.Status.ObservedGeneration {
			continue
		}
		if _, err := s.do(remove(rs, metav1.DeleteOptions{})); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// syncStatus writes the status if it changed, with no estimate of progress.
func (s *rollout) syncStatus(rss []*appsv1.ReplicaSet, newRS *appsv1.ReplicaSet) error {
	status := s.calculateStatus(rss, newRS)
	if reflect.DeepEqual(s.d.Status, status) {
		return nil
	}
	s.d.Status = status
	_, err := s.writeStatus()
	return err
}

// requeueStuck looks again when the progress deadline is over.
func (s *rollout) requeueStuck(status appsv1.DeploymentStatus) {
	cond := deploymentutil.GetDeploymentCondition(s.d.Status, appsv1.DeploymentProgressing)
	if !deploymentutil.HasProgressDeadline(s.d) || cond == nil ||
		deploymentutil.DeploymentComplete(s.d, &status) || cond.Reason == deploymentutil.TimedOutReason {
		return
	}
	after := s.deadline(*cond).Sub(s.state.Started.Wall())
	s.once(func() {
		if after < time.Second {
			s.a.q.addRateLimited(s.state.Key)
			return
		}
		s.a.q.addAfter(s.state.Key, after+time.Second)
	})
}

func (s *rollout) deadline(cond appsv1.DeploymentCondition) time.Time {
	return cond.LastUpdateTime.Add(time.Duration(*s.d.Spec.ProgressDeadlineSeconds) * time.Second)
}

// rollbackTo reads the annotation that the long gone extensions/v1beta1 rollback left.
func rollbackTo(d *appsv1.Deployment) *int64 {
	text, ok := d.Annotations[appsv1.DeprecatedRollbackTo]
	if !ok {
		return nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}
