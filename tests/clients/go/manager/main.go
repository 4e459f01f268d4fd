// A controller-runtime manager with its default configuration: leader election, a cache, events,
// one controller of a custom kind that owns a core kind, and one of a core kind.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	patience  = 30 * time.Second
	finalizer = "clients.example.com/finalizer"
)

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, addGreetings} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if err := install(ctx, direct); err != nil {
		return fmt.Errorf("installing the definition: %w", err)
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, LeaderElection: true, LeaderElectionID: "greeter.clients.example.com", LeaderElectionNamespace: "default",
		LeaderElectionReleaseOnCancel: true, Metrics: metricsserver.Options{BindAddress: "127.0.0.1:0"},
	})
	if err != nil {
		return err
	}
	greeter := &greeter{Client: manager.GetClient(), recorder: manager.GetEventRecorder("greeter")}
	if err := ctrl.NewControllerManagedBy(manager).For(&Greeting{}).Owns(&corev1.ConfigMap{}).Complete(greeter); err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.Secret{}).Complete(&labeller{manager.GetClient()}); err != nil {
		return err
	}
	managing, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(managing) }()
	if err := scenario(ctx, direct); err != nil {
		stop()
		return err
	}
	stop()
	return <-ended
}

func install(ctx context.Context, direct client.Client) error {
	keep := true
	text := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "greetings.clients.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "greetings", Kind: "Greeting", ListKind: "GreetingList", Singular: "greeting"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: group.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec":   {Type: "object", Required: []string{"text"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{"text": {Type: "string"}}},
						"status": text,
					},
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
	if err := direct.Create(ctx, definition); err != nil {
		return err
	}
	return until(ctx, "the definition to be established", func(ctx context.Context) (bool, error) {
		if err := direct.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
			return false, err
		}
		for _, condition := range definition.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
}

func until(ctx context.Context, what string, done func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, done); err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

// Makes a ConfigMap of every Greeting.
type greeter struct {
	client.Client
	recorder events.EventRecorder
}

func (g *greeter) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	greeting := &Greeting{}
	if err := g.Get(ctx, request.NamespacedName, greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !greeting.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(greeting, finalizer) {
			return ctrl.Result{}, g.Update(ctx, greeting)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(greeting, finalizer) {
		return ctrl.Result{}, g.Update(ctx, greeting)
	}
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: greeting.Name, Namespace: greeting.Namespace}}
	result, err := controllerutil.CreateOrUpdate(ctx, g.Client, made, func() error {
		made.Data = map[string]string{"text": greeting.Spec.Text}
		return controllerutil.SetControllerReference(greeting, made, g.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if result != controllerutil.OperationResultNone {
		g.recorder.Eventf(greeting, made, corev1.EventTypeNormal, "Greeted", "Greet", "greeting %s: %s", result, greeting.Spec.Text)
	}
	if greeting.Status.Greeted == greeting.Spec.Text {
		return ctrl.Result{}, nil
	}
	greeting.Status.Greeted = greeting.Spec.Text
	return ctrl.Result{}, g.Status().Update(ctx, greeting)
}

// Labels secrets that ask for it.
type labeller struct{ client.Client }

func (l *labeller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	if err := l.Get(ctx, request.NamespacedName, secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if secret.Annotations["label-me"] == "" || secret.Labels["labelled"] != "" {
		return ctrl.Result{}, nil
	}
	base := secret.DeepCopy()
	secret.Labels = map[string]string{"labelled": "yes"}
	return ctrl.Result{}, l.Patch(ctx, secret, client.MergeFrom(base))
}

func scenario(ctx context.Context, direct client.Client) error {
	greeting := &Greeting{ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: "default"}, Spec: GreetingSpec{Text: "hello"}}
	if err := direct.Create(ctx, greeting); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(greeting)
	greeted := func(text string) error {
		return until(ctx, "a config map that says "+text, func(ctx context.Context) (bool, error) {
			found := &corev1.ConfigMap{}
			if err := direct.Get(ctx, key, found); err != nil {
				return false, client.IgnoreNotFound(err)
			}
			if err := direct.Get(ctx, key, greeting); err != nil {
				return false, err
			}
			return found.Data["text"] == text && greeting.Status.Greeted == text, nil
		})
	}
	if err := greeted("hello"); err != nil {
		return err
	}
	fmt.Println("ok created")
	greeting.Spec.Text = "good day"
	if err := direct.Update(ctx, greeting); err != nil {
		return err
	}
	if err := greeted("good day"); err != nil {
		return err
	}
	fmt.Println("ok updated")
	if err := direct.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: "default"}}); err != nil {
		return err
	}
	if err := greeted("good day"); err != nil {
		return err
	}
	fmt.Println("ok repaired")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: "default", Annotations: map[string]string{"label-me": "please"}}}
	if err := direct.Create(ctx, secret); err != nil {
		return err
	}
	if err := until(ctx, "the label", func(ctx context.Context) (bool, error) {
		err := direct.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		return secret.Labels["labelled"] == "yes", err
	}); err != nil {
		return err
	}
	fmt.Println("ok labelled")
	if err := until(ctx, "the event", func(ctx context.Context) (bool, error) {
		list := &corev1.EventList{}
		err := direct.List(ctx, list, client.InNamespace("default"), client.MatchingFields{"reason": "Greeted"})
		return len(list.Items) > 0, err
	}); err != nil {
		return err
	}
	fmt.Println("ok told")
	if err := direct.Delete(ctx, greeting); err != nil {
		return err
	}
	if err := until(ctx, "the end of the greeting", func(ctx context.Context) (bool, error) {
		err := direct.Get(ctx, key, greeting)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}); err != nil {
		return err
	}
	fmt.Println("ok deleted")
	return nil
}
