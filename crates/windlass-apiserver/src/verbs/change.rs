//! What every change of an object passes on its way to the store.

use std::sync::Arc;

use serde_json::Value;

use super::Call;
use super::admit::Admitted;
use super::write::{WriteOr, Written};
use crate::apply::{self, Managers};
use crate::auth::rbac::escalation;
use crate::object::{self, meta, set_meta};
use crate::resource::Resource;
use crate::status::{ApiError, Cause, Result, field};
use crate::store::{Stored, WriteError};
use crate::{admission, decode, metadata, strategy, validation};

/// How often a patch that lost a race is tried again.
const RACE_RETRIES: usize = 64;

/// What an update wants to store.
pub(super) struct Update {
    pub(super) object: Value,
    /// Ownership, when it was decided already (by an apply).
    pub(super) managers: Option<Managers>,
}

impl Call<'_> {
    /// Changes the object the path names by `make`, which sees what is stored.
    pub(super) async fn update_object(
        &self,
        subresource: &str,
        make: &(dyn Fn(&Value) -> Result<Update> + Sync),
    ) -> Result<Written> {
        for _ in 0..RACE_RETRIES {
            let found = self.find()?;
            let old = self.to_requested(found.value()).await?;
            let mut update = make(&old)?;
            self.check_identity(&update.object, &old)?;
            self.place(&mut update.object)?;
            let named = version_named(&update.object)?;
            if named.is_some_and(|named| named != found.revision) {
                return Err(ApiError::modified(self.resource.subject(), self.name()));
            }
            let written = self.update_from(&found, &old, update, subresource);
            match written.await {
                // Somebody else was quicker. Who named no version wants the change anyway.
                Err(WriteOr::Write(WriteError::Changed)) if named.is_none() || !self.is_put() => {}
                Err(WriteOr::Write(error)) => return Err(self.write_error(self.name(), error)),
                Err(WriteOr::Refused(error)) => return Err(error),
                Ok(written) => return Ok(written),
            }
        }
        Err(ApiError::modified(self.resource.subject(), self.name()))
    }

    /// A PUT that names a version means that version; every other write is remade from what is there.
    fn is_put(&self) -> bool {
        self.request.verb == crate::http::Verb::Update
    }

    async fn update_from(
        &self,
        found: &Arc<Stored>,
        old: &Value,
        update: Update,
        subresource: &str,
    ) -> Result<Written, WriteOr> {
        let resource = &self.resource;
        let mut new = update.object;
        set_meta(&mut new, "name", Some(self.name().into()));
        self.record(&mut new, old, subresource, update.managers);
        admission::admit_change(resource, subresource, &mut new, old);
        let options = self.update_options();
        let admitted = Admitted::update(self, subresource, old, &options);
        // Of these two webhooks see the body that was sent, not the object it is about.
        let seen = !matches!(subresource, "scale" | "binding");
        if seen {
            self.mutate(&admitted, Some(&mut new)).await?;
            // What webhooks made of it is no more to be trusted than what the client sent.
            self.place(&mut new)?;
            self.check_after_webhooks(&new, old, found.revision)?;
        }
        escalation::check(
            self.server,
            self.who,
            resource,
            self.namespace(),
            &new,
            Some(old),
        )?;
        let mut reservation = self.reserve(&mut new, Some(old), subresource)?;
        strategy::prepare_update(&mut new, old, resource, subresource);
        if resource.is("", "persistentvolumes") && subresource == "status" {
            let was = &old["status"];
            if new["status"]["phase"] != was["phase"] {
                new["status"]["lastPhaseTransitionTime"] = self.server.clock().now_seconds().into();
            } else if let Some(time) = was.get("lastPhaseTransitionTime") {
                new["status"]["lastPhaseTransitionTime"] = time.clone();
            }
        }
        if matches!(subresource, "status" | "approval")
            && resource.is("certificates.k8s.io", "certificatesigningrequests")
        {
            strategy::set_condition_times(&mut new, old, &self.server.clock().now_seconds());
        }
        set_meta(
            &mut new,
            "resourceVersion",
            Some(found.revision.to_string().into()),
        );
        self.fill_defaults(&mut new);
        // The write that ends an object shows what was sent, which never becomes what is stored.
        let last = (object::is_terminating(old) && !resource.is_custom()).then(|| new.clone());
        self.settle(&mut new);
        self.refuse(&new, &self.update_causes(&new, old, subresource))?;
        self.drop_shown_empties(&mut new);
        // That a kind of address is on its way out is told to who makes one.
        if subresource.is_empty() && !resource.is("discovery.k8s.io", "endpointslices") {
            self.warn(validation::warnings(resource, &new));
        }
        if resource.is_custom() {
            self.warn(crate::crd::finalizer_warnings(&new, Some(old)));
            decode::whole_numbers(&mut new);
        }
        if subresource.is_empty() {
            admission::validate_change(self.server, resource, &new, old)?;
        }
        if seen {
            self.judge(&admitted, Some(&new)).await?;
        }
        if apply::equal_but_for_times(&new, old) && self.is_stored_as(&new, found).await? {
            return Ok(Written::Stored(found.clone()));
        }
        let key = found.key.clone();
        if is_finished(&new, old, resource) {
            if !self.dry_run {
                let deleted = self
                    .server
                    .store()
                    .delete(
                        &resource.table,
                        key,
                        found.revision,
                        self.to_stored(old.clone()).await?,
                        &resource.selectable,
                    )
                    .map_err(WriteOr::Write)?;
                self.after_write(&deleted, true);
            }
            return Ok(Written::Value(last.unwrap_or(new)));
        }
        if self.dry_run {
            return Ok(Written::Value(self.as_if_stored(new).await?));
        }
        let new = self.to_stored(new).await?;
        self.claim(reservation.as_mut(), &new)?;
        let stored = self
            .server
            .store()
            .update(
                &resource.table,
                key,
                found.revision,
                new,
                &resource.selectable,
            )
            .map_err(WriteOr::Write)?;
        if let Some(reservation) = reservation {
            reservation.keep();
        }
        self.after_write(&stored, false);
        Ok(Written::Stored(stored))
    }

    /// What is wrong with a change. The metadata is looked at for every kind, and again by the
    /// kind's own rules: its causes are told each time, as Kubernetes does.
    fn update_causes(&self, new: &Value, old: &Value, subresource: &str) -> Vec<Cause> {
        let checks = metadata::Checks::of(&self.resource);
        let mut causes = metadata::common_causes(new);
        causes.extend(metadata::update_causes(new, old));
        let changed = match subresource {
            "" | "scale" => checks.changed,
            _ => checks.status,
        };
        let own_update = metadata::own_update_causes(new, old, changed);
        if checks.whole_first && !self.resource.is_custom() && matches!(subresource, "" | "scale") {
            let times = if self.resource.is("", "persistentvolumes") {
                2
            } else {
                1
            };
            for _ in 0..times {
                causes.extend(metadata::own_causes(new, checks.whole));
                if !validation::is_changes_only(&self.resource) {
                    causes.extend(self.kind_causes(new, Some(old), subresource));
                }
            }
            causes.extend(own_update);
            causes.extend(validation::check_changed(new, old, &self.resource));
            return causes;
        }
        causes.extend(own_update);
        if self.resource.is_custom() {
            causes.extend(self.kind_causes(new, Some(old), subresource));
        } else if matches!(subresource, "" | "scale") {
            let own = metadata::own_causes(new, checks.whole);
            let kind_causes = || self.kind_causes(new, Some(old), subresource);
            causes.extend(self.in_stored_form(new, |new| {
                self.in_stored_form(old, |old| {
                    validation::check_change(new, old, &self.resource, own, kind_causes)
                })
            }));
        } else {
            causes.extend(self.in_stored_form(new, |new| {
                self.in_stored_form(old, |old| {
                    validation::check_subresource(new, old, &self.resource, subresource)
                })
            }));
        }
        causes
    }

    /// Whether an object is stored as it is now: one from before its definition changed may read as
    /// it does only because of what was filled in or left out.
    async fn is_stored_as(&self, new: &Value, found: &Stored) -> Result<bool> {
        let as_stored = match &self.resource.custom {
            Some(custom) => custom.as_stored,
            None => !self.resource.is("", "persistentvolumeclaims"),
        };
        if as_stored {
            return Ok(true);
        }
        let stored = self.to_stored(new.clone()).await?;
        Ok(apply::equal_but_for_times(&stored, &found.value()))
    }

    /// Where kube-apiserver keeps an object, which some of its messages tell.
    fn storage_key(&self) -> String {
        let (group, plural) = (&self.resource.group, &self.resource.plural);
        let table = match (group.as_str(), plural.as_str()) {
            ("", "nodes") => "minions".to_owned(),
            ("", "services") => "services/specs".to_owned(),
            ("", "endpoints") => "services/endpoints".to_owned(),
            ("apiextensions.k8s.io" | "apiregistration.k8s.io", _) => format!("{group}/{plural}"),
            _ if self.resource.is_custom() => format!("{group}/{plural}"),
            _ => plural.clone(),
        };
        let namespace = match self.namespace() {
            "" => String::new(),
            namespace => format!("{namespace}/"),
        };
        // A dry run does not get as far as the place where everything is kept.
        let root = if self.dry_run { "" } else { "/registry" };
        format!("{root}/{table}/{namespace}{}", self.name())
    }

    /// What is said to a write that means an object of another uid.
    pub(super) fn uid_mismatch(&self, asked: &str, is: &str) -> String {
        format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {asked}, UID in object meta: {is}",
            self.storage_key()
        )
    }

    /// A PUT that names a uid means that object; a patch that names another tries to change it.
    pub(super) fn check_uid(&self, new: &Value, is: &str) -> Result<()> {
        let asked = meta(new, "uid");
        if !self.is_put() || asked.is_empty() || asked == is {
            return Ok(());
        }
        Err(ApiError::conflict(
            self.resource.subject(),
            self.name(),
            &self.uid_mismatch(asked, is),
        ))
    }

    /// What webhooks may not change of an object: its name and its version.
    fn check_after_webhooks(&self, new: &Value, old: &Value, revision: u64) -> Result<()> {
        let named = version_named(new)?;
        if named.is_some_and(|named| named != revision) {
            return Err(ApiError::modified(self.resource.subject(), self.name()));
        }
        let name = meta(new, "name");
        if name == meta(old, "name") {
            return Ok(());
        }
        let immutable = field::invalid("metadata.name", &name.into(), "field is immutable");
        // It is found by the rules of all kinds, and by those of this one.
        self.refuse(new, &[immutable.clone(), immutable])
    }

    fn check_identity(&self, new: &Value, old: &Value) -> Result<()> {
        let name = meta(new, "name");
        if !name.is_empty() && name != self.name() {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                self.name()
            )));
        }
        self.check_uid(new, meta(old, "uid"))
    }
}

/// The version an object says it is of; zero says nothing.
fn version_named(object: &Value) -> Result<Option<u64>> {
    match meta(object, "resourceVersion") {
        "" => Ok(None),
        text => match text.parse() {
            Ok(0) => Ok(None),
            Ok(version) => Ok(Some(version)),
            Err(_) => Err(ApiError::without_reason(format!(
                "strconv.ParseUint: parsing {text:?}: invalid syntax"
            ))),
        },
    }
}

/// Whether an object that is going away has nothing left that holds it.
fn is_finished(new: &Value, old: &Value, resource: &Resource) -> bool {
    let held_by_namespace = resource.is("", "namespaces")
        && new["spec"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty());
    object::is_terminating(old)
        && object::finalizers(new).is_empty()
        && old["metadata"]["deletionGracePeriodSeconds"]
            .as_i64()
            .unwrap_or_default()
            == 0
        && !held_by_namespace
}
