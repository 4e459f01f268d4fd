// A program as people write them with client-go, in its default configuration, which sends built-in
// kinds as protobuf. It does what operators do and ends with an error at the first thing that goes
// wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
)

const (
	namespace = "clientgo"
	patience  = 30 * time.Second
)

// Counts the bodies sent as protobuf: the point of this program is that there are some.
type counter struct {
	inner    http.RoundTripper
	protobuf atomic.Int64
}

func (c *counter) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Header.Get("Content-Type") == "application/vnd.kubernetes.protobuf" {
		c.protobuf.Add(1)
	}
	return c.inner.RoundTrip(request)
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err == nil {
		err = run(config)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clientgo:", err)
		os.Exit(1)
	}
}

func run(config *rest.Config) error {
	counted := &counter{}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		counted.inner = inner
		return counted
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	steps := []struct {
		name string
		do   func(context.Context, *rest.Config, kubernetes.Interface) error
	}{
		{"namespace", makeNamespace},
		{"objects", objects},
		{"workloads", workloads},
		{"informers", informed},
		{"watch", watched},
		{"lease", elected},
		{"events", recorded},
		{"reviews", reviewed},
		{"discovery", discovered},
		{"metadata", metadataOnly},
	}
	for _, step := range steps {
		if err := step.do(ctx, config, client); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Println("ok", step.name)
	}
	if counted.protobuf.Load() == 0 {
		return errors.New("nothing was sent as protobuf")
	}
	fmt.Println("protobuf bodies:", counted.protobuf.Load())
	return nil
}

func expect(ok bool, format string, arguments ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, arguments...)
}

// Asks again until the answer is yes.
func until(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, done); err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

func makeNamespace(ctx context.Context, _ *rest.Config, client kubernetes.Interface) error {
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	made, err := client.CoreV1().Namespaces().Create(ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return expect(made.UID != "" && made.Status.Phase == corev1.NamespaceActive, "made %+v", made)
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "clients"}},
		Data:       map[string]string{"key": value, "empty": ""},
		BinaryData: map[string][]byte{"bytes": {0, 1, 255}},
	}
}

func objects(ctx context.Context, _ *rest.Config, client kubernetes.Interface) error {
	maps := client.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(ctx, configMap("life", "1"), metav1.CreateOptions{FieldManager: "clients"})
	if err != nil {
		return err
	}
	if err := expect(made.Data["key"] == "1" && len(made.BinaryData["bytes"]) == 3, "made %+v", made); err != nil {
		return err
	}
	if _, err := maps.Create(ctx, configMap("life", "1"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("made twice: %v", err)
	}
	changed := made.DeepCopy()
	changed.Data["key"] = "2"
	if _, err := maps.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if _, err := maps.Update(ctx, changed, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("updated a stale version: %v", err)
	}
	patched, err := maps.Patch(ctx, "life", types.StrategicMergePatchType, []byte(`{"data":{"key":"3"}}`), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	if patched, err = maps.Patch(ctx, patched.Name, types.MergePatchType, []byte(`{"data":{"empty":null}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := expect(patched.Data["key"] == "3" && len(patched.Data) == 1, "patched %+v", patched); err != nil {
		return err
	}
	wanted := applycorev1.ConfigMap("life", namespace).WithData(map[string]string{"applied": "yes"})
	applied, err := maps.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "applier"})
	if err != nil {
		return err
	}
	if err := expect(applied.Data["applied"] == "yes" && applied.Data["key"] == "3", "applied %+v", applied); err != nil {
		return err
	}
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "app=clients", FieldSelector: "metadata.name=life"})
	if err != nil {
		return err
	}
	if err := expect(len(list.Items) == 1, "listed %d", len(list.Items)); err != nil {
		return err
	}
	stale := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")}
	if err := maps.Delete(ctx, "life", stale); !apierrors.IsConflict(err) {
		return fmt.Errorf("deleted another: %v", err)
	}
	foreground := metav1.DeletePropagationBackground
	if err := maps.Delete(ctx, "life", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
		return err
	}
	if _, err := maps.Get(ctx, "life", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("after its deletion: %v", err)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := maps.Create(ctx, configMap(name, name), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=clients"}); err != nil {
		return err
	}
	if list, err = maps.List(ctx, metav1.ListOptions{LabelSelector: "app=clients"}); err != nil {
		return err
	}
	return expect(len(list.Items) == 0, "%d are left of a collection", len(list.Items))
}

func workloads(ctx context.Context, _ *rest.Config, client kubernetes.Interface) error {
	replicas, labels := int32(1), map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "web", Image: "busybox",
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("250m")}},
				}}},
			},
		},
	}
	deployments := client.AppsV1().Deployments(namespace)
	made, err := deployments.Create(ctx, deployment, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	cpu := made.Spec.Template.Spec.Containers[0].Resources.Limits["cpu"]
	if err := expect(cpu.MilliValue() == 250 && made.Spec.Strategy.RollingUpdate != nil, "made %+v", made.Spec); err != nil {
		return err
	}
	// Its controller writes it too.
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		scale.Spec.Replicas = 2
		_, err = deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	return until(ctx, "the deployment's pods", func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		return err == nil && len(pods.Items) == 2, err
	})
}

func informed(ctx context.Context, _ *rest.Config, client kubernetes.Interface) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().ConfigMaps().Informer()
	seen := make(chan string, 100)
	told := func(verb string, object any) {
		if found, ok := object.(*corev1.ConfigMap); ok && found.Name == "informed" {
			seen <- verb + " " + found.Data["key"]
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { told("added", object) },
		UpdateFunc: func(_, object any) { told("updated", object) },
		DeleteFunc: func(object any) { told("deleted", object) },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if err := expect(synced, "%v is not synced", kind); err != nil {
			return err
		}
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(ctx, configMap("informed", "1"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	made.Data["key"] = "2"
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "informed", metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, wanted := range []string{"added 1", "updated 2", "deleted 2"} {
		select {
		case found := <-seen:
			if err := expect(found == wanted, "told %q instead of %q", found, wanted); err != nil {
				return err
			}
		case <-time.After(patience):
			return fmt.Errorf("never told of %q", wanted)
		}
	}
	return nil
}

func watched(ctx context.Context, _ *rest.Config, client kubernetes.Interface) error {
	secrets := client.CoreV1().Secrets(namespace)
	list, err := secrets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	watching, err := secrets.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, AllowWatchBookmarks: true})
	if err != nil {
		return err
	}
	defer watching.Stop()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "watched"}, StringData: map[string]string{"a": "b"}}
	if _, err := secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	select {
	case event := <-watching.ResultChan():
		found, _ := event.Object.(*corev1.Secret)
		return expect(event.Type == watch.Added && found != nil && string(found.Data["a"]) == "b", "told %+v", event)
	case <-time.After(patience):
		return errors.New("never told of a secret")
	}
}

func elected(ctx context.Context, _ *rest.Config, client kubernetes.Interface) error {
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, "leader",
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: "me"})
	if err != nil {
		return err
	}
	electing, stop := context.WithCancel(ctx)
	defer stop()
	leads, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		leaderelection.RunOrDie(electing, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { close(leads) },
				OnStoppedLeading: func() {},
			},
		})
	}()
	select {
	case <-leads:
	case <-time.After(patience):
		return errors.New("never elected")
	}
	leases := client.CoordinationV1().Leases(namespace)
	first, err := leases.Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return err
	}
	err = until(ctx, "the lease's renewal", func(ctx context.Context) (bool, error) {
		now, err := leases.Get(ctx, "leader", metav1.GetOptions{})
		return err == nil && now.Spec.RenewTime.After(first.Spec.RenewTime.Time), err
	})
	if err != nil {
		return err
	}
	stop()
	<-over
	released, err := leases.Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect(*released.Spec.HolderIdentity == "", "held by %q after its release", *released.Spec.HolderIdentity)
}

func recorded(ctx context.Context, _ *rest.Config, client kubernetes.Interface) error {
	secret, err := client.CoreV1().Secrets(namespace).Get(ctx, "watched", metav1.GetOptions{})
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	broadcaster.NewRecorder(scheme.Scheme, "clientgo").Eventf(secret, nil, corev1.EventTypeNormal, "Seen", "Seeing", "newer %s", "event")
	older := record.NewBroadcaster()
	defer older.Shutdown()
	older.StartRecordingToSink(&typedSink{client})
	recorder := older.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "clientgo"})
	// The second is the first again, counted.
	recorder.Event(secret, corev1.EventTypeWarning, "Older", "older event")
	recorder.Event(secret, corev1.EventTypeWarning, "Older", "older event")
	return until(ctx, "the events", func(ctx context.Context) (bool, error) {
		newer, err := client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Seen"})
		if err != nil {
			return false, err
		}
		older, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Older"})
		if err != nil {
			return false, err
		}
		return len(newer.Items) == 1 && newer.Items[0].Note == "newer event" &&
			len(older.Items) == 1 && older.Items[0].Count == 2, nil
	})
}

// The sink of the older recorder.
type typedSink struct{ client kubernetes.Interface }

func (s *typedSink) Create(event *corev1.Event) (*corev1.Event, error) {
	return s.client.CoreV1().Events(event.Namespace).CreateWithEventNamespaceWithContext(context.Background(), event)
}

func (s *typedSink) Update(event *corev1.Event) (*corev1.Event, error) {
	return s.client.CoreV1().Events(event.Namespace).UpdateWithEventNamespaceWithContext(context.Background(), event)
}

func (s *typedSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	return s.client.CoreV1().Events(event.Namespace).PatchWithEventNamespaceWithContext(context.Background(), event, data)
}

func reviewed(ctx context.Context, _ *rest.Config, client kubernetes.Interface) error {
	me, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := expect(me.Status.UserInfo.Username != "", "I am nobody"); err != nil {
		return err
	}
	access, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := expect(access.Status.Allowed, "may not: %+v", access.Status); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	if _, err := client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	seconds := int64(700)
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "robot",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	review, err := client.AuthenticationV1().TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return expect(review.Status.User.Username == "system:serviceaccount:"+namespace+":robot", "reviewed %+v", review.Status)
}

func discovered(_ context.Context, _ *rest.Config, client kubernetes.Interface) error {
	_, lists, err := client.Discovery().ServerGroupsAndResources()
	if err != nil {
		return err
	}
	if err := expect(len(lists) > 15, "%d lists of resources", len(lists)); err != nil {
		return err
	}
	document, err := client.Discovery().OpenAPISchema()
	if err != nil {
		return fmt.Errorf("OpenAPI v2: %w", err)
	}
	found := false
	for _, definition := range document.GetDefinitions().GetAdditionalProperties() {
		found = found || definition.GetName() == "io.k8s.api.core.v1.Pod"
	}
	if err := expect(found, "OpenAPI v2 does not know pods"); err != nil {
		return err
	}
	paths, err := client.Discovery().OpenAPIV3().Paths()
	if err != nil {
		return fmt.Errorf("OpenAPI v3: %w", err)
	}
	schema, err := paths["apis/apps/v1"].Schema("application/json")
	if err != nil {
		return fmt.Errorf("OpenAPI v3 of apps: %w", err)
	}
	return expect(strings.Contains(string(schema), "io.k8s.api.apps.v1.Deployment"), "OpenAPI v3 does not know deployments")
}

func metadataOnly(ctx context.Context, config *rest.Config, _ kubernetes.Interface) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	secrets := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)
	list, err := secrets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if err := expect(len(list.Items) == 1 && list.Items[0].Name == "watched", "listed %+v", list.Items); err != nil {
		return err
	}
	return secrets.Delete(ctx, "watched", metav1.DeleteOptions{})
}
