//! Who wrote what: the `managedFields` of every write but an apply, which decides its own.

use serde_json::{Value, json};

use super::Call;
use crate::apply::{self, Managers, Writer};
use crate::defaults;
use crate::object::{meta, set_meta};
use crate::registry::types::Type;

impl Call<'_> {
    /// Ownership as the object tells it; a client that sends none keeps what there is, and one
    /// that writes through a subresource has no say in it.
    fn managers(object: &Value, old: &Value, subresource: &str) -> Managers {
        if subresource.is_empty() {
            let sent = Managers::read(&object["metadata"]["managedFields"]);
            if !sent.is_empty() {
                return sent;
            }
        }
        Managers::read(&old["metadata"]["managedFields"])
    }

    /// Records who made a new object.
    pub(crate) fn record_new(&self, object: &mut Value, decided: Option<Managers>) {
        self.record(object, &self.untouched(), "", decided);
    }

    /// An object nobody has written to.
    pub(super) fn untouched(&self) -> Value {
        if self.resource.is_custom() {
            json!({})
        } else {
            defaults::zero(&self.resource.ty)
        }
    }

    /// Records who sent a body that is not stored itself, as webhooks are shown it.
    pub(super) fn record_body(
        &self,
        body: &mut Value,
        type_name: &str,
        api_version: &str,
        subresource: &str,
    ) {
        let ty = Type::Named(type_name.into());
        let (manager, now) = (self.field_manager(), self.server.clock().now_seconds());
        let writer = Writer {
            manager: &manager,
            api_version,
            subresource,
            now: Some(&now),
        };
        let untouched = defaults::zero(&ty);
        let managers =
            apply::record_update(&untouched, body, &ty, Managers::default(), &writer, &[]);
        set_meta(body, "managedFields", Some(managers.write()));
    }

    /// Records that `old` (an untouched object for a create) became `object`, before the server
    /// puts right what the client may not change.
    pub(super) fn record(
        &self,
        object: &mut Value,
        old: &Value,
        subresource: &str,
        decided: Option<Managers>,
    ) {
        let managers = match decided {
            Some(managers) => managers,
            // One empty entry is how a client asks for all of it to be forgotten.
            None if object["metadata"]["managedFields"] == json!([{}]) => Managers::default(),
            // An object that nobody was recorded for is recorded from its first apply on.
            None if !meta(old, "uid").is_empty()
                && Self::managers(object, old, subresource).is_empty() =>
            {
                Managers::default()
            }
            // What has not the form of its type cannot be divided among owners.
            None if self.resource.is_custom()
                && !(apply::is_typed(object, &self.resource.ty)
                    && apply::is_typed(old, &self.resource.ty)) =>
            {
                Managers::default()
            }
            None => {
                let (manager, now) = (self.field_manager(), self.server.clock().now_seconds());
                let api_version = self.resource.api_version();
                let writer = Writer {
                    manager: &manager,
                    api_version: &api_version,
                    subresource,
                    now: Some(&now),
                };
                let managers = Self::managers(object, old, subresource);
                apply::record_update(
                    old,
                    object,
                    &self.resource.ty,
                    managers,
                    &writer,
                    self.resource
                        .strategy
                        .reset_fields(subresource, self.resource.has_status()),
                )
            }
        };
        set_meta(
            object,
            "managedFields",
            (!managers.is_empty()).then(|| managers.write()),
        );
        if !self.resource.is_custom() {
            defaults::drop_empties(object, &self.resource.ty);
        }
    }
}
