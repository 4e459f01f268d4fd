//! An operator as `run --dry-run` starts it.

use windlass::{
    Operator,
    run::{Launch, Running},
};

use super::cluster::TestCluster;
use crate::operators::{self, Account};

impl TestCluster {
    /// Installs an operator's kinds, and runs it as its own `ServiceAccount` in a rehearsal: all it
    /// writes is judged, and nothing is stored. Dropped, it ends.
    pub async fn start_dry(&self, operator: &Operator) -> Running {
        let account = Account::of(operator);
        let client = self.client();
        let admitted = async {
            operators::install(&client, operator).await?;
            operators::admit(&client, operator, &account).await
        };
        if let Err(error) = admitted.await {
            panic!("cannot admit {}: {error}", operator.name());
        }
        let launch = Launch {
            dry_run: true,
            ..Launch::default()
        };
        let client = self.client_of(account.identity());
        let running = operator.launch(client, self.environment().clone(), launch);
        self.settle().await;
        running
    }
}
