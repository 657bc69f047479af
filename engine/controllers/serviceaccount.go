package controllers

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podwalk/engine/apiserver/wire"
	"podwalk/engine/client"
)

// serviceAccounts makes the ServiceAccount "default" in every namespace: without it no
// Pod can be created there. Upstream: pkg/controller/serviceaccount.
type serviceAccounts struct {
	a          *actor
	namespaces *client.Cache[*corev1.Namespace]
	accounts   *client.Cache[*corev1.ServiceAccount]
}

const defaultAccount = "default"

func newServiceAccounts(a *actor) logic {
	c := &serviceAccounts{a: a}
	c.namespaces = watch(a, func(ch client.Change[*corev1.Namespace]) { a.q.add(ch.Object().Name) })
	c.accounts = watch(a, func(ch client.Change[*corev1.ServiceAccount]) {
		if ch.Type == wire.Deleted && ch.Old.Name == defaultAccount {
			a.q.add(ch.Old.Namespace)
		}
	})
	return c
}

func (c *serviceAccounts) gather(key string) any {
	ns, ok := c.namespaces.Get("", key)
	if !ok || ns.Status.Phase != corev1.NamespaceActive {
		return nil
	}
	if _, there := c.accounts.Get(key, defaultAccount); there {
		return nil
	}
	return ns
}

func (c *serviceAccounts) sync(r *run, input any) error {
	ns := input.(*corev1.Namespace)
	req := create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: defaultAccount}})
	req.Background = true
	_, err := r.do(req)
	if apierrors.IsAlreadyExists(err) || terminating(err) {
		return nil
	}
	return err
}

// rootCAPublisher puts the cluster's CA into the ConfigMap kube-root-ca.crt of every
// namespace, from where every Pod's token volume takes it. Upstream:
// pkg/controller/certificates/rootcacertpublisher.
type rootCAPublisher struct {
	a          *actor
	namespaces *client.Cache[*corev1.Namespace]
	configMaps *client.Cache[*corev1.ConfigMap]
}

const (
	rootCAConfigMap       = "kube-root-ca.crt"
	descriptionAnnotation = "kubernetes.io/description"
	rootCADescription     = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. " +
		"No other usage is guaranteed across distributions of Kubernetes clusters."
)

func newRootCAPublisher(a *actor) logic {
	c := &rootCAPublisher{a: a}
	c.namespaces = watch(a, func(ch client.Change[*corev1.Namespace]) {
		if ch.New != nil && (ch.Type == wire.Added || ch.New.Status.Phase == corev1.NamespaceActive) {
			a.q.add(ch.New.Name)
		}
	})
	c.configMaps = watch(a, func(ch client.Change[*corev1.ConfigMap]) {
		if ch.Type != wire.Added && ch.Object().Name == rootCAConfigMap {
			a.q.add(ch.Object().Namespace)
		}
	})
	return c
}

// rootCAInput is what a sync of one namespace looks at.
type rootCAInput struct {
	Namespace string
	ConfigMap *corev1.ConfigMap // nil where there is none
}

func (c *rootCAPublisher) gather(key string) any {
	cm, ok := c.configMaps.Get(key, rootCAConfigMap)
	if ok && len(cm.Data) == 1 && cm.Data["ca.crt"] == c.a.cfg.CABundle && cm.Annotations[descriptionAnnotation] != "" {
		return nil
	}
	if _, there := c.namespaces.Get("", key); !there {
		return nil
	}
	return rootCAInput{key, cm}
}

func (c *rootCAPublisher) sync(r *run, input any) error {
	in := input.(rootCAInput)
	data := map[string]string{"ca.crt": r.a.cfg.CABundle}
	if in.ConfigMap == nil {
		req := create(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: in.Namespace, Name: rootCAConfigMap,
				Annotations: map[string]string{descriptionAnnotation: rootCADescription},
			},
			Data: data,
		})
		req.Background = true
		_, err := r.do(req)
		if apierrors.IsNotFound(err) || terminating(err) {
			return nil
		}
		return err
	}
	cm := in.ConfigMap.DeepCopy()
	cm.Data = data
	if cm.Annotations == nil {
		cm.Annotations = map[string]string{}
	}
	cm.Annotations[descriptionAnnotation] = rootCADescription
	req := update(cm)
	req.Background = true
	_, err := r.do(req)
	return err
}
