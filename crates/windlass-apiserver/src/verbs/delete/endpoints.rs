//! The Endpoints of a Service go with it, so that one of the same name does not find them.

use super::mark;
use crate::object;
use crate::server::ApiServer;
use crate::store::{Key, TableName, WriteError};

/// Deletes the Endpoints of a Service that is gone, as any client would: their finalizers hold them.
pub(crate) fn forget_endpoints(server: &ApiServer, service: &Key) {
    let (store, table) = (server.store(), TableName::new("", "endpoints"));
    while let Some(found) = store.get(&table, service) {
        let (key, old) = (service.clone(), found.value());
        let written = if object::finalizers(&old).is_empty() {
            store.delete(&table, key, found.revision, old, &[])
        } else {
            let mut marked = old.clone();
            mark(&mut marked, &old, 0, server.clock());
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
