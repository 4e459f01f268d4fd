//! What follows from what is stored and is not stored itself: who may do what, and which custom
//! resources are served. Worked out anew when a server starts from a folder, and when writes were
//! taken back because the disk failed.

use crate::auth::rbac;
use crate::server::ApiServer;
use crate::store::TableName;

const POLICY: &[&str] = &[
    "clusterroles",
    "roles",
    "clusterrolebindings",
    "rolebindings",
];

/// Works it all out.
pub(crate) fn run(server: &ApiServer) {
    let mut objects = Vec::new();
    for plural in POLICY {
        let table = TableName::new(rbac::GROUP, plural);
        if let Ok(listing) = server.store().list(&table, None, None, None) {
            objects.extend(listing.objects.iter().map(|object| object.value()));
        }
    }
    server.rbac().replace(rbac::Policy::of(&objects));
    crate::registry::custom::restore(server);
}
