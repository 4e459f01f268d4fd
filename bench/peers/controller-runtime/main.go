// The widget operator on controller-runtime, as its own documentation would write it: a cached
// client, CreateOrUpdate for the Deployment, Status().Update when the status differs.
package main

import (
	"context"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// workers is the same for every operator of the benchmark.
const workers = 8

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "widgets:", err)
		os.Exit(1)
	}
}

func run() error {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	addWidgets(scheme)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	// The client's own limit would be all that is measured.
	config.QPS = -1
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "127.0.0.1:0"},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Widget{}).
		Owns(&appsv1.Deployment{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(&reconciler{manager.GetClient(), scheme})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

type reconciler struct {
	client.Client
	scheme *runtime.Scheme
}

// Reconcile brings the Deployment and the status of one widget in step.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := &Widget{}
	if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		// Only what may change is set again: a whole template would take away what the server
		// filled in, and every restart would write.
		if deployment.CreationTimestamp.IsZero() {
			fill(widget, deployment)
		}
		deployment.Spec.Replicas = &widget.Spec.Replicas
		deployment.Spec.Template.Spec.Containers[0].Image = widget.Spec.Image
		return controllerutil.SetControllerReference(widget, deployment, r.scheme)
	})
	if err != nil {
		// Made in the last moment by the reconcile before this one.
		if apierrors.IsAlreadyExists(err) {
			return ctrl.Result{Requeue: true}, nil
		}
		return ctrl.Result{}, err
	}
	status := WidgetStatus{
		ObservedGeneration: widget.Generation,
		Replicas:           widget.Spec.Replicas,
		ReadyReplicas:      deployment.Status.ReadyReplicas,
	}
	if widget.Status == status {
		return ctrl.Result{}, nil
	}
	widget.Status = status
	return ctrl.Result{}, r.Status().Update(ctx, widget)
}
