//! The Endpoints of a Service go with it, so that one of the same name does not find them.

use crate::object;
use crate::store::{Key, TableName, WriteError};
use crate::verbs::Call;

impl Call<'_> {
    /// Deletes the Endpoints of a Service that is gone, as anybody would: their finalizers hold them.
    pub(in crate::verbs) fn forget_endpoints(&self, service: &Key) {
        let (store, table) = (self.server.store(), TableName::new("", "endpoints"));
        while let Some(found) = store.get(&table, service) {
            let (key, old) = (service.clone(), found.value());
            let written = if object::finalizers(&old).is_empty() {
                store.delete(&table, key, found.revision, old, &[])
            } else {
                let mut marked = old.clone();
                self.mark(&mut marked, &old, 0);
                if marked == old {
                    return;
                }
                store.update(&table, key, found.revision, marked, &[])
            };
            if !matches!(written, Err(WriteError::Changed)) {
                return;
            }
        }
    }
}
