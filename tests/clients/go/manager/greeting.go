package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var group = schema.GroupVersion{Group: "clients.example.com", Version: "v1"}

// Greeting is a custom kind.
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GreetingSpec   `json:"spec"`
	Status            GreetingStatus `json:"status,omitempty"`
}

// GreetingSpec is what is wanted.
type GreetingSpec struct {
	Text string `json:"text"`
}

// GreetingStatus is what was done.
type GreetingStatus struct {
	Greeted string `json:"greeted,omitempty"`
}

// GreetingList is some of them.
type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Greeting `json:"items"`
}

// DeepCopyObject copies it.
func (g *Greeting) DeepCopyObject() runtime.Object {
	out := *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject copies it.
func (l *GreetingList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Greeting, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Greeting)
	}
	return &out
}

func addGreetings(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(group, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(scheme, group)
	return nil
}
