//! What is true of one kind alone, a file each.
//!
//! Everything that is published about a kind (its fields, defaults, columns, subresources) is in the
//! table of `facts`. What that does not say is in its [`Strategy`]: how its objects are prepared,
//! checked, warned of, stored, shown and deleted. The registry finds it for each resource, and
//! nothing else asks which kind a resource is of; a test holds that. A method that a kind does not
//! have does what most kinds do.

mod admissionregistration;
mod apiextensions;
mod apiregistration;
mod apps;
mod autoscaling;
mod batch;
pub(crate) mod certificates;
mod coordination;
pub(crate) mod core;
mod custom;
mod discovery;
pub(crate) mod events;
mod flowcontrol;
mod networking;
mod node;
mod plain;
mod policy;
mod rbac;
mod resource;
mod review;
pub(crate) mod scheduling;
mod storage;

#[cfg(test)]
mod tests;

use std::fmt;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::admission::quota::Measured;
use crate::auth::Identity;
use crate::clock::Clock;
use crate::defaults;
use crate::equality::{fields_mean_the_same, means_the_same};
use crate::names;
use crate::random::Random;
use crate::registry::{resource::Resource, types::Type};
use crate::server::ApiServer;
use crate::status::{Cause, Result};
use crate::store::Stored;
use crate::table::text::requirements;
use crate::validation::at::Causes;
use crate::validation::metadata::Checks;
use crate::verbs::delete::{Deletion, Outcome};
use crate::webhook::Attributes;

pub(crate) use custom::Custom;

/// A way to a field; `*` is every item of a list or entry of a map.
pub(crate) type Way = &'static [&'static str];
/// Fields, each by its path.
pub(crate) type Fields = &'static [&'static [&'static str]];
/// Changes an object into another form.
pub(crate) type Form = fn(&mut Value);

/// Who writes, and where time and chance come from.
pub(crate) struct Writing<'a> {
    pub(crate) who: &'a Identity,
    pub(crate) clock: &'a Clock,
    pub(crate) random: &'a Random,
}

/// What is admitted where.
#[derive(Clone, Copy)]
pub(crate) struct Admission<'a> {
    pub(crate) server: &'a ApiServer,
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: &'a str,
}

/// When what is wrong with a change is reported, beside what is wrong with the new object by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    After,
    First,
    /// The new object is not looked at by itself.
    Only,
}

/// What one kind does its own way.
pub(crate) trait Strategy: fmt::Debug + Send + Sync {
    // What it is.

    /// Whether it is a question, which is answered and not kept.
    fn is_review(&self) -> bool {
        false
    }

    /// Whether it is posted and never kept.
    fn is_only_posted(&self) -> bool {
        self.is_review()
    }

    /// Whether posting it binds a pod to a node.
    fn binds_pods(&self) -> bool {
        false
    }

    /// What its names stand for when requests are passed on to them.
    fn proxied(&self) -> Option<crate::node::Proxied> {
        None
    }

    /// Whether it is the namespace it is in.
    fn is_namespace(&self) -> bool {
        false
    }

    /// Where it has the pods it makes; nowhere to go for a pod itself.
    fn pod_template(&self) -> Option<Way> {
        None
    }

    /// Whether it is a pod itself.
    fn is_pod(&self) -> bool {
        self.pod_template().is_some_and(<[_]>::is_empty)
    }

    /// Whether it gives someone a role.
    fn binds_roles(&self) -> bool {
        false
    }

    /// Whether it is given addresses and ports.
    fn is_given_addresses(&self) -> bool {
        false
    }

    /// How quotas count it, if they do.
    fn measured(&self) -> Option<Measured> {
        Some(Measured::Other)
    }

    /// Whether no policy is asked about it.
    fn passes_no_policies(&self) -> bool {
        false
    }

    /// Whether no webhook is asked about it.
    fn passes_no_webhooks(&self) -> bool {
        self.passes_no_policies()
    }

    // How requests for it are answered.

    /// What every client of it is warned of.
    fn request_warning(&self) -> Option<&'static str> {
        None
    }

    /// Whether a PUT creates what is not there.
    fn is_created_by_update(&self) -> bool {
        false
    }

    /// Whether a PUT must name the version it means.
    fn needs_version(&self) -> bool {
        false
    }

    /// The group that errors about its objects name.
    fn error_group<'a>(&self, group: &'a str) -> &'a str {
        group
    }

    /// Where kube-apiserver keeps its objects, which some messages name.
    fn storage_prefix(&self, resource: &Resource) -> String {
        resource.plural.clone()
    }

    /// Why a field cannot be selected by.
    fn unknown_field_label(&self, field: &str) -> String {
        format!("field label not supported: {field}")
    }

    /// Its selector as the scale subresource writes it.
    fn selector_text(&self, selector: &Value) -> String {
        requirements(selector)
    }

    // Forms: as it is stored, as it is asked for, and in its other version.

    /// To the form it is stored in, where that is another.
    fn stored_form(&self) -> Option<Form> {
        None
    }

    /// From what is stored to what is asked for, where that is another.
    fn requested_form(&self) -> Option<Form> {
        None
    }

    /// From its other version to this, where it has two.
    fn other_form(&self) -> Option<Form> {
        None
    }

    /// Whether a write that changes nothing would store what is stored.
    fn is_stored_as_read(&self) -> bool {
        true
    }

    /// Makes a new object what is kept of it.
    fn keep_new(&self, _: &mut Value) {}

    /// The group of the table it is kept in.
    fn table_group<'a>(&self, group: &'a str) -> &'a str {
        group
    }

    /// Where a field that a selector names is found in a stored object.
    fn stored_field(&self, field: &str) -> String {
        field.to_owned()
    }

    /// The group and version that its storage version hash is made of.
    fn storage_version<'a>(&self, group: &'a str, version: &'a str) -> (&'a str, &'a str) {
        (group, version)
    }

    // Defaults that are not facts.

    /// Before defaults are filled into what a client sent.
    fn before_defaults(&self, _: &mut Value) {}

    /// Fills in what has a default.
    fn fill_defaults(&self, object: &mut Value, ty: &Type) {
        defaults::fill(object, ty);
    }

    /// After defaults were filled into what a client sent.
    fn after_defaults(&self, _: &mut Value) {}

    // Admission.

    /// What a new object is given, or why it is refused.
    fn admit(&self, _: &Admission<'_>, _: &mut Value) -> Result<()> {
        Ok(())
    }

    /// What a change is given before it is looked at.
    fn admit_change(&self, _: &mut Value, _: &Value) {}

    /// Refuses a new object that its kind allows and the cluster does not.
    fn admit_created(&self, _: &Admission<'_>, _: &Value) -> Result<()> {
        Ok(())
    }

    /// Refuses a change that its kind allows and the cluster does not.
    fn admit_changed(&self, _: &Admission<'_>, _: &Value, _: &Value) -> Result<()> {
        Ok(())
    }

    /// Refuses a write that its kind allows and the writer may not make.
    fn admit_write(&self, _: &Attributes<'_>, _: Option<&Value>) -> Result<()> {
        Ok(())
    }

    /// Refuses a deletion that the cluster does not allow.
    fn admit_delete(&self, _: &Resource, _: &str) -> Result<()> {
        Ok(())
    }

    // Preparation: what is the server's to say.

    /// Fields whose feature is off: what is sent of them is not kept.
    fn disabled_fields(&self) -> &'static [Way] {
        &[]
    }

    /// Whether a new object keeps the status it brings.
    fn keeps_new_status(&self) -> bool {
        false
    }

    /// Sets what a new object gets; the client is warned of what comes back.
    fn prepare_create(&self, _: &mut Value, _: &Writing<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Keeps what an update of the main resource may not change.
    fn prepare_update(&self, _: &mut Value, _: &Value) {}

    /// The same for an update of the status.
    fn prepare_status_update(&self, _: &mut Value, _: &Value) {}

    /// The same for a subresource of this kind alone; whether it is one.
    fn prepare_subresource(&self, _: &mut Value, _: &Value, _: &str) -> bool {
        false
    }

    /// Sets when something of it changed.
    fn set_times(&self, _: &mut Value, _: &Value, _: &str, _: &Clock) {}

    /// Whether metadata is written with the status.
    fn status_takes_metadata(&self) -> bool {
        true
    }

    /// Fields that a write through a path is not going to change, whatever it says about them.
    fn reset_fields(&self, subresource: &str, has_status: bool) -> Fields {
        reset_fields(subresource, has_status)
    }

    /// Whether a new object has a generation.
    fn has_generation(&self, has_spec: bool) -> bool {
        has_spec
    }

    /// Whether changes are counted in the generation.
    fn counts_changes(&self, has_spec: bool) -> bool {
        self.has_generation(has_spec)
    }

    /// Whether a change is one that is counted.
    fn generation_changes(&self, new: &Value, old: &Value, resource: &Resource) -> bool {
        content_changes(new, old, resource)
    }

    // Validation.

    /// Why it cannot have a name.
    fn name_errors(&self, name: &str) -> Vec<String> {
        names::subdomain_errors(name)
    }

    /// How its rules look at the metadata, beside those of all kinds.
    fn metadata_checks(&self) -> Checks {
        Checks::ALL
    }

    /// What is wrong with an object that is new, or that was `old`.
    fn check(&self, _: &Value, _: Option<&Value>, _: &mut Causes) {}

    /// What is wrong with a new object where it is.
    fn check_there(&self, _: &Admission<'_>, _: &Value) -> Option<Cause> {
        None
    }

    /// What a change may not do.
    fn check_update(&self, _: &Value, _: &Value, _: &mut Causes) {}

    /// When that is said.
    fn update_order(&self) -> Order {
        Order::After
    }

    /// What is wrong with a change of the status.
    fn check_status(&self, _: &Value, _: &Value, _: &mut Causes) {}

    /// What is wrong with a change through a subresource of this kind alone.
    fn check_subresource(&self, _: &Value, _: &Value, _: &str, _: &mut Causes) {}

    /// What its writer is warned of before it is checked.
    fn early_warnings(&self, _: &Value, _: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    /// What its writer is warned of once it is found right.
    fn warnings(&self, _: &Value) -> Vec<String> {
        Vec::new()
    }

    /// Whether who changes one is warned, too.
    fn warns_on_update(&self) -> bool {
        true
    }

    // What follows from writes.

    /// What follows from a write.
    fn after_write(&self, _: &ApiServer, _: &Resource, _: &Stored, _: bool) {}

    /// Completes an object that a new server starts with.
    fn at_start_up(&self, _: &ApiServer, _: &mut Value) {}

    // Tables.

    /// What a row says of its object as a whole.
    fn row_conditions(&self, _: &Value) -> Option<Value> {
        None
    }

    /// What a column shows; none for the columns that all kinds have.
    fn cell(&self, _: &Value, _: &str, _: Timestamp) -> Option<Value> {
        None
    }

    /// Cells after those of the columns.
    fn extra_cells(&self, _: &Value, _: Timestamp) -> Vec<Value> {
        Vec::new()
    }

    /// Takes out of metadata what is not shown alone.
    fn hidden_metadata(&self) -> Option<Form> {
        None
    }

    // Deletion.

    /// What a delete does to an object.
    fn delete(&self, deletion: &Deletion<'_>) -> Outcome {
        deletion.outcome()
    }

    /// Whether an object that is going away is still held, its finalizers aside.
    fn is_held(&self, _: &Value) -> bool {
        false
    }

    /// Whether preconditions are looked at before its own rules of deletion.
    fn checks_preconditions_first(&self) -> bool {
        false
    }

    /// Whether its deletion answers the object; others answer a Status.
    fn answers_deleted(&self) -> bool {
        false
    }

    /// Whether anything can depend on it.
    fn may_have_dependents(&self) -> bool {
        true
    }

    /// Whether what depends on it stays by default.
    fn orphans_by_default(&self) -> bool {
        false
    }

    /// What a client is warned of that does not say what becomes of its dependents.
    fn orphan_warning(&self) -> Option<&'static str> {
        None
    }
}

/// The strategy of a built-in resource.
pub(crate) fn find(group: &str, version: &str, plural: &str) -> &'static dyn Strategy {
    let found = match group {
        "" => core::find(plural),
        "events.k8s.io" => events::find(plural),
        "apps" => apps::find(plural),
        "autoscaling" => autoscaling::find(version, plural),
        "batch" => batch::find(plural),
        "admissionregistration.k8s.io" => admissionregistration::find(plural),
        "apiextensions.k8s.io" => apiextensions::find(plural),
        "apiregistration.k8s.io" => apiregistration::find(plural),
        "certificates.k8s.io" => certificates::find(plural),
        "coordination.k8s.io" => coordination::find(plural),
        "discovery.k8s.io" => discovery::find(plural),
        "flowcontrol.apiserver.k8s.io" => flowcontrol::find(plural),
        "networking.k8s.io" => networking::find(plural),
        "node.k8s.io" => node::find(plural),
        "policy" => policy::find(plural),
        "rbac.authorization.k8s.io" => rbac::find(plural),
        "resource.k8s.io" => resource::find(plural),
        "scheduling.k8s.io" => scheduling::find(plural),
        "storage.k8s.io" => storage::find(plural),
        "authentication.k8s.io" | "authorization.k8s.io" => review::find(plural),
        _ => None,
    };
    found.unwrap_or(&plain::Plain)
}

/// Fields that most kinds do not change through a path.
pub(crate) fn reset_fields(subresource: &str, has_status: bool) -> Fields {
    match subresource {
        "status" => &[&["spec"]],
        "" | "finalize" if has_status => &[&["status"]],
        _ => &[],
    }
}

/// Whether anything changes that is neither metadata nor status.
pub(crate) fn content_changes(new: &Value, old: &Value, resource: &Resource) -> bool {
    if resource.ty.field("spec").is_some() {
        return !means_the_same(&new["spec"], &old["spec"]);
    }
    !fields_mean_the_same(&content(new, resource), &content(old, resource))
}

/// An object without metadata, and without the status if that is written apart.
fn content(object: &Value, resource: &Resource) -> Map<String, Value> {
    let mut map = object.as_object().cloned().unwrap_or_default();
    map.remove("metadata");
    if resource.has_status() {
        map.remove("status");
    }
    map
}
