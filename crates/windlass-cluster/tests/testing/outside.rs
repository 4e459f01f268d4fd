//! An operator that calls a system outside of the cluster, which the test simulates: killed after
//! any call, and with calls and answers lost, it ends where it would have ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use tokio::time::sleep;
use windlass::{
    Action, Context, Controller, Declare, Error, Operator, Reconciler, Result, handle::Controlled,
};
use windlass_cluster::{Fate, Outside, TestCluster};

use crate::operators::wish;

const OPERATOR: &str = "bank";
const DEADLINE: Duration = Duration::from_secs(5);

/// A bank, which numbers the accounts that it opens.
struct Bank {
    outside: Outside,
    accounts: Mutex<BTreeMap<String, usize>>,
}

impl Bank {
    fn of(cluster: &TestCluster) -> Arc<Self> {
        let bank = Arc::new(Self {
            outside: cluster.outside(),
            accounts: Mutex::default(),
        });
        cluster.keep(bank.clone());
        bank
    }

    /// Opens an account, or finds it; the error is that nobody answered.
    async fn open(&self, name: &str) -> Result<usize, ()> {
        let fate = self.outside.call(OPERATOR, "open an account", true);
        if fate == Fate::CallLost {
            sleep(DEADLINE).await;
            return Err(());
        }
        let number = {
            let mut accounts = self.accounts.lock().unwrap();
            let next = accounts.len() + 1;
            *accounts.entry(name.to_owned()).or_insert(next)
        };
        match fate {
            Fate::CallerKilled => self.outside.kill(OPERATOR).await,
            Fate::AnswerLost => {
                sleep(DEADLINE).await;
                return Err(());
            }
            Fate::Answered | Fate::CallLost => {}
        }
        Ok(number)
    }
}

/// Opens an account for every secret, and writes down its number.
struct Clerk {
    bank: Arc<Bank>,
    maps: Controlled<ConfigMap>,
    /// Whether it asks for another account each time.
    forgetful: bool,
}

impl Reconciler for Clerk {
    type Object = Secret;

    async fn reconcile(&self, secret: &Secret, ctx: &Context<Secret>) -> Result<Action> {
        let mut name = secret.metadata.name.clone().unwrap_or_default();
        if self.maps.get(ctx, name.as_str()).await?.is_some() {
            return Ok(Action::done());
        }
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.clone());
        if self.forgetful {
            let there = self.bank.accounts.lock().unwrap().len();
            name = format!("{name}-{there}");
        }
        let number = self.bank.open(&name).await;
        let number = number.map_err(|()| Error::other("no answer of the bank"))?;
        map.data = Some([("number".to_owned(), number.to_string())].into());
        self.maps.apply(ctx, map).await?;
        Ok(Action::done())
    }
}

fn operator(bank: Arc<Bank>, forgetful: bool) -> Operator {
    let declare = move |declare: &mut Declare<Secret>| Clerk {
        bank: bank.clone(),
        maps: declare.controls(),
        forgetful,
    };
    Operator::new(OPERATOR).controller(Controller::of_existing::<Secret>().reconciler(declare))
}

async fn scenario(cluster: TestCluster) {
    cluster.create(wish("one")).await;
    cluster.settle().await;
    assert!(cluster.find::<ConfigMap>("one").await.is_some());
}

#[windlass_cluster::test]
async fn an_operator_that_asks_for_the_same_again_passes(cluster: TestCluster) {
    cluster
        .start_made(|cluster| operator(Bank::of(cluster), false))
        .await;
    assert_eq!(cluster.disturb_outside_calls(scenario).await, 3);
    // Each kind of disturbance was one more call of the same thing.
    scenario(cluster.clone()).await;
    assert_eq!(cluster.outside_calls().len(), 1);
    assert_eq!(cluster.kept::<Bank>().accounts.lock().unwrap().len(), 1);
}

#[windlass_cluster::test]
#[should_panic(expected = "call 1 of 1 (open an account) killed after it, bank ends differently")]
async fn an_operator_that_asks_for_another_each_time_is_found_out(cluster: TestCluster) {
    cluster
        .start_made(|cluster| operator(Bank::of(cluster), true))
        .await;
    cluster.disturb_outside_calls(scenario).await;
}
