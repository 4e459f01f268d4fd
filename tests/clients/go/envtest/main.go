// A test of an operator as people write them with envtest, from the start of the control plane to its
// stop. KUBEBUILDER_ASSETS says whose control plane it is: it runs unchanged on that of envtest, and
// prints how long starting took. With WINDLASS_CONTROLLERS=1 it also expects what envtest does not
// do: namespaces that end, and owned objects that go with their owners.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const patience = time.Minute

var page = schema.GroupVersionKind{Group: "envtest.example.com", Version: "v1", Kind: "Page"}

func main() {
	log.SetLogger(logr.Discard())
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func environment() *envtest.Environment {
	path, failure, none := "/refuse", admissionv1.Fail, admissionv1.SideEffectClassNone
	return &envtest.Environment{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{{
			ObjectMeta: metav1.ObjectMeta{Name: "pages." + page.Group},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: page.Group,
				Scope: apiextensionsv1.NamespaceScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "pages", Kind: page.Kind},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: page.Version, Served: true, Storage: true,
					Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object",
						Properties: map[string]apiextensionsv1.JSONSchemaProps{
							"spec":   {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer"}}},
							"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"seen": {Type: "integer"}}},
						},
					}},
				}},
			},
		}},
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			ValidatingWebhooks: []*admissionv1.ValidatingWebhookConfiguration{{
				ObjectMeta: metav1.ObjectMeta{Name: "refuse"},
				Webhooks: []admissionv1.ValidatingWebhook{{
					Name: "refuse.example.com", FailurePolicy: &failure, SideEffects: &none,
					AdmissionReviewVersions: []string{"v1"},
					Rules: []admissionv1.RuleWithOperations{{
						Operations: []admissionv1.OperationType{admissionv1.Create},
						Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
					}},
					ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Name: "hook", Namespace: "default", Path: &path}},
				}},
			}},
		},
	}
}

func run() error {
	began := time.Now()
	environment := environment()
	config, err := environment.Start()
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	fmt.Printf("ok started in %d ms\n", time.Since(began).Milliseconds())
	steps := []struct {
		what string
		try  func(context.Context, *envtest.Environment, *rest.Config) error
	}{
		{"reconciled", reconciled}, {"faked status", fakedStatus}, {"webhook", refusedByWebhook},
		{"users", users}, {"kubectl", kubectl}, {"removal", removal},
	}
	for _, step := range steps {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		err := step.try(ctx, environment, config)
		cancel()
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", step.what, err), environment.Stop())
		}
		fmt.Println("ok", step.what)
	}
	began = time.Now()
	if err := environment.Stop(); err != nil {
		return fmt.Errorf("stopping: %w", err)
	}
	fmt.Printf("ok stopped in %d ms\n", time.Since(began).Milliseconds())
	return nil
}

type seer struct{ client.Client }

func (s seer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(page)
	if err := s.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	size, _, _ := unstructured.NestedInt64(object.Object, "spec", "size")
	if err := unstructured.SetNestedField(object.Object, size, "status", "seen"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, s.Status().Update(ctx, object)
}

func manager(environment *envtest.Environment, config *rest.Config) (ctrl.Manager, error) {
	hooks := environment.WebhookInstallOptions
	return ctrl.NewManager(config, ctrl.Options{
		Metrics:       server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir}),
	})
}

// A manager of controller-runtime reconciles a kind that envtest has installed.
func reconciled(ctx context.Context, environment *envtest.Environment, config *rest.Config) error {
	manager, err := manager(environment, config)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(page)
	err = ctrl.NewControllerManagedBy(manager).Named("pages").For(object.DeepCopy()).Complete(seer{manager.GetClient()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	object.SetName("one")
	object.SetNamespace("default")
	object.Object["spec"] = map[string]any{"size": int64(7)}
	if err := manager.GetClient().Create(ctx, object); err != nil {
		cancel()
		return err
	}
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := manager.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(object), object)
		seen, _, _ := unstructured.NestedInt64(object.Object, "status", "seen")
		return seen == 7, err
	})
	cancel()
	return errors.Join(err, <-done)
}

// Nothing but the test writes the status of what a controller would own: no controller runs.
func fakedStatus(ctx context.Context, _ *envtest.Environment, config *rest.Config) error {
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "busybox"}}},
			},
		},
	}
	if err := cluster.Create(ctx, deployment); err != nil {
		return err
	}
	deployment.Status.Replicas, deployment.Status.ReadyReplicas = 1, 1
	if err := cluster.Status().Update(ctx, deployment); err != nil {
		return err
	}
	// No account exists that the pod would run as, and none is asked for.
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "alone", Namespace: "default"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "busybox"}}},
	}
	if err := cluster.Create(ctx, pod); err != nil {
		return err
	}
	var pods corev1.PodList
	if err := cluster.List(ctx, &pods); err != nil {
		return err
	}
	if err := cluster.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
		return err
	}
	if len(pods.Items) != 1 || deployment.Status.ReadyReplicas != 1 {
		return fmt.Errorf("%d pods, %d ready", len(pods.Items), deployment.Status.ReadyReplicas)
	}
	return nil
}

// A webhook served by the test refuses.
func refusedByWebhook(ctx context.Context, environment *envtest.Environment, config *rest.Config) error {
	manager, err := manager(environment, config)
	if err != nil {
		return err
	}
	refuse := func(context.Context, admission.Request) admission.Response { return admission.Denied("not today") }
	manager.GetWebhookServer().Register("/refuse", &admission.Webhook{Handler: admission.HandlerFunc(refuse)})
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return manager.GetWebhookServer().StartedChecker()(&http.Request{}) == nil, nil
	})
	if err == nil {
		refused := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "refused", Namespace: "default"}}
		err = manager.GetClient().Create(ctx, refused)
		if apierrors.IsForbidden(err) {
			err = nil
		} else {
			err = fmt.Errorf("not refused: %w", err)
		}
	}
	cancel()
	return errors.Join(err, <-done)
}

// Users that the test adds have the rights of their groups.
func users(ctx context.Context, environment *envtest.Environment, config *rest.Config) error {
	user, err := environment.AddUser(envtest.User{Name: "jane", Groups: []string{"readers"}}, nil)
	if err != nil {
		return err
	}
	cluster, err := client.New(user.Config(), client.Options{})
	if err != nil {
		return err
	}
	if err := cluster.List(ctx, &corev1.PodList{}); !apierrors.IsForbidden(err) {
		return fmt.Errorf("jane may list pods: %w", err)
	}
	return nil
}

func kubectl(_ context.Context, environment *envtest.Environment, _ *rest.Config) error {
	admin, err := environment.AddUser(envtest.User{Name: "root", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	kubectl, err := admin.Kubectl()
	if err != nil {
		return err
	}
	out, errs, err := kubectl.Run("get", "pages", "-A", "-o", "name")
	if err != nil {
		said, _ := io.ReadAll(errs)
		return fmt.Errorf("%s: %w", said, err)
	}
	if said, _ := io.ReadAll(out); string(said) != "page."+page.Group+"/one\n" {
		return fmt.Errorf("%q", said)
	}
	return nil
}

// A namespace that is deleted, and an object whose owner is: they go if controllers run.
func removal(ctx context.Context, environment *envtest.Environment, config *rest.Config) error {
	expected := os.Getenv("WINDLASS_CONTROLLERS") == "1"
	cluster, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "going"}}
	if err := cluster.Create(ctx, namespace); err != nil {
		return err
	}
	owner := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "owner", Namespace: "default"}}
	if err := cluster.Create(ctx, owner); err != nil {
		return err
	}
	owned := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "owned", Namespace: "default", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Secret", Name: "owner", UID: owner.UID},
	}}}
	if err := cluster.Create(ctx, owned); err != nil {
		return err
	}
	for _, object := range []client.Object{namespace, owner} {
		if err := cluster.Delete(ctx, object); err != nil {
			return err
		}
	}
	if !expected {
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
			return err
		}
		return cluster.Get(ctx, client.ObjectKeyFromObject(owned), owned)
	}
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		for _, object := range []client.Object{namespace, owned} {
			if err := cluster.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				return false, err
			}
		}
		return true, nil
	})
}
