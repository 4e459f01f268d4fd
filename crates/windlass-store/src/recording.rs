//! What a request changes, noted while it is carried out.

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;

use super::{Change, TableName};

tokio::task_local! {
    static RECORDED: RefCell<Vec<Recorded>>;
}

/// One change, and where it was made.
#[derive(Clone, Debug)]
pub struct Recorded {
    table: TableName,
    /// The change.
    pub change: Arc<Change>,
}

impl Recorded {
    /// The table's name, as in `deployments.apps`.
    pub fn table(&self) -> &str {
        self.table.as_str()
    }
}

/// Runs a request, and notes each change that it makes.
pub async fn recording<T>(request: impl Future<Output = T>) -> (T, Vec<Recorded>) {
    let recorded = async {
        let output = request.await;
        (output, RECORDED.with(RefCell::take))
    };
    RECORDED.scope(RefCell::default(), recorded).await
}

/// Notes a change, if those of this request are noted.
pub(super) fn note(table: &TableName, change: &Arc<Change>) {
    let _ = RECORDED.try_with(|recorded| {
        recorded.borrow_mut().push(Recorded {
            table: table.clone(),
            change: change.clone(),
        });
    });
}
