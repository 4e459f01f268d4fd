// Package v1 is the Go twin of the Rust type in main.rs: what controller-gen writes for it is what
// ours must mean.
//
// +groupName=fleet.example.com
// +versionName=v1
package v1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Ship is a ship of the fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.crew,statuspath=.status.aboard,selectorpath=.status.selector
// +kubebuilder:resource:shortName=sh;shp,categories=all;fleet
// +kubebuilder:printcolumn:name="Crew",type=integer,JSONPath=`.spec.crew`,description="How many sail it.",format=int32
// +kubebuilder:printcolumn:name="Flag",type=string,JSONPath=`.spec.flag`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:selectablefield:JSONPath=`.spec.flag`
type Ship struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What a user asks for.
	Spec ShipSpec `json:"spec"`
	// What is.
	// +optional
	Status *ShipStatus `json:"status,omitempty"`
}

// ShipSpec is what a user asks for.
//
// +kubebuilder:validation:XValidation:rule="self.crew >= self.officers",message="officers are crew"
type ShipSpec struct {
	// How many sail it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000
	// +kubebuilder:default=3
	Crew int32 `json:"crew"`
	// How many of them command.
	// +kubebuilder:default=1
	Officers int32 `json:"officers"`
	// Whose flag it flies.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[a-z]+$`
	Flag string `json:"flag"`
	// How it moves.
	// +kubebuilder:default=Sail
	Propulsion Propulsion `json:"propulsion,omitempty"`
	// Its tonnage.
	// +optional
	Tonnage *int64 `json:"tonnage,omitempty"`
	// Its draught in metres.
	// +optional
	Draught *float64 `json:"draught,omitempty"`
	// Whether it is armed.
	// +optional
	// +kubebuilder:default=false
	Armed bool `json:"armed"`
	// The ports it calls at, each once.
	// +listType=set
	// +kubebuilder:validation:MaxItems=10
	// +optional
	// +kubebuilder:default={}
	Ports []string `json:"ports"`
	// Its holds.
	// +listType=map
	// +listMapKey=name
	// +optional
	// +kubebuilder:default={}
	Holds []Hold `json:"holds"`
	// Its log, as a whole.
	// +listType=atomic
	// +optional
	Log []string `json:"log,omitempty"`
	// What is written on it.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Where it lies, a number or a name.
	// +optional
	Berth *intstr.IntOrString `json:"berth,omitempty"`
	// When it was launched.
	// +optional
	Launched *metav1.Time `json:"launched,omitempty"`
	// Whatever else, by name.
	// +optional
	Extras map[string]apiextensionsv1.JSON `json:"extras,omitempty"`
	// Whatever else.
	// +optional
	Extra *apiextensionsv1.JSON `json:"extra,omitempty"`
	// Where it was built; never changes.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a ship is built once"
	// +optional
	Yard string `json:"yard,omitempty"`
}

// Propulsion is how a ship moves.
//
// +kubebuilder:validation:Enum=Sail;Steam;Diesel
type Propulsion string

// Hold is a room for cargo.
type Hold struct {
	// Its name.
	Name string `json:"name"`
	// How much fits.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967295
	Volume int64 `json:"volume"`
}

// ShipStatus is what is.
type ShipStatus struct {
	// How many are aboard.
	// +optional
	Aboard int32 `json:"aboard"`
	// How to find them.
	// +optional
	Selector *string `json:"selector,omitempty"`
	// What is known of it.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
