//! The controller: takes in what there is whenever a pod or claim changes, and writes results when
//! their time is over.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use windlass::handle::{Access, Delete, Raw, Reads, Verb, Writes};
use windlass::{Event, Key, prelude::*, watch::Select};

use crate::account::Account;
use crate::item::{self, Item};
use crate::kind::{Report, ReportStatus};
use crate::metrics;
use crate::result::{self, Source};

const ACCOUNT: &str = "account.json";
/// Where use is not measured, look again only after so many milliseconds.
const ABSENT: i64 = 5 * 60 * 1000;

pub(crate) struct Reports {
    pods: Reads<Pod>,
    claims: Reads<PersistentVolumeClaim>,
    stored: Reads<ConfigMap>,
    written: Writes<ConfigMap>,
    metrics: Raw,
    /// Do not look again before this time whether use is measured.
    absent_until: AtomicI64,
    /// Reports whose account this process has kept up to date, by uid.
    seen: Mutex<BTreeMap<String, Account>>,
}

impl Reports {
    pub(crate) fn declare(declare: &mut Declare<Report>) -> Self {
        let metrics = Access::resource("metrics.k8s.io", "pods", [Verb::List]);
        Self {
            pods: declare.reads(Pod::triggering_all()),
            claims: declare.reads(PersistentVolumeClaim::triggering_all()),
            stored: declare.reads_live(),
            written: declare.writes(Access::to([Verb::Create, Verb::Patch, Verb::Delete])),
            metrics: declare.raw([metrics]),
            absent_until: AtomicI64::new(0),
            seen: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Account>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn items(&self, report: &Report, ctx: &Context<Report>) -> Result<Vec<Item>> {
        let pods = self.pods.list(ctx, Select::all_namespaces()).await?;
        let claims = self.claims.list(ctx, Select::all_namespaces()).await?;
        let pods = pods
            .iter()
            .filter_map(|pod| item::of_pod(&report.spec, pod));
        let claims = claims
            .iter()
            .filter_map(|claim| item::of_claim(&report.spec, claim));
        Ok(pods.chain(claims).collect())
    }

    /// The account, and whether it may have missed something: it comes from an earlier process.
    async fn account(&self, report: &Report, ctx: &Context<Report>) -> Result<(Account, bool)> {
        let uid = report.uid().unwrap_or_default();
        if let Some(account) = self.lock().get(&uid) {
            return Ok((account.clone(), false));
        }
        let key = Key::namespaced(report.spec.namespace(), account_name(report));
        let stored = self.stored.get(ctx, &key).await?;
        // One of a deleted report of this name is not this one's.
        let stored = stored.filter(|map| is_owned_by(map, &uid));
        let text = stored
            .as_ref()
            .and_then(|map| map.data.as_ref()?.get(ACCOUNT));
        if let Some(text) = text {
            return Ok((serde_json::from_str(text)?, true));
        }
        let created = report.creation_timestamp().map(|time| time.0);
        let created = created.unwrap_or_else(|| ctx.clock().now());
        let asked = report.spec.reporting_start.as_ref().map(|start| start.0);
        let start = asked.map_or(created, |asked| asked.max(created));
        let end = report.spec.end_after(start);
        let account = Account::new(start.as_millisecond(), end.as_millisecond());
        Ok((account, true))
    }

    async fn store(&self, report: &Report, account: &Account, ctx: &Context<Report>) -> Result<()> {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(account_name(report));
        map.metadata.namespace = Some(report.spec.namespace().to_owned());
        map.metadata.owner_references = Some(vec![ctx.owner_reference()]);
        let text = serde_json::to_string(account)?;
        map.data = Some(BTreeMap::from([(ACCOUNT.to_owned(), text)]));
        self.written.apply(ctx, &map).await?;
        Ok(())
    }

    /// Looks at what pods use, if it is time to; returns whether the account changed.
    async fn sample(
        &self,
        report: &Report,
        (account, items): (&mut Account, &[Item]),
        now: i64,
        ctx: &Context<Report>,
    ) -> Result<bool> {
        let due = account
            .sampled
            .is_none_or(|last| now - last >= report.spec.sample());
        if !due || now < account.start.max(self.absent_until.load(Ordering::Relaxed)) {
            return Ok(false);
        }
        let Some(used) = metrics::read(&self.metrics.client(ctx)).await? else {
            self.absent_until.store(now + ABSENT, Ordering::Relaxed);
            return Ok(false);
        };
        let by_uid = items.iter().filter_map(|item| {
            let used = used.get(item.pod.as_ref()?)?;
            Some((item.uid.clone(), *used))
        });
        account.sample(&by_uid.collect(), now);
        Ok(true)
    }

    /// Writes the result of a time that is over, and takes away those that are too old.
    async fn publish(
        &self,
        report: &Report,
        account: &Account,
        ctx: &Context<Report>,
    ) -> Result<Vec<String>> {
        let mut results = account.results.clone();
        let rows = account.close();
        let name = report.name_any();
        let result = result::Result {
            report: &name,
            start: timestamp(account.start),
            end: timestamp(account.end),
            source: source(account),
            rows: &rows,
        };
        let map = result.map(report.spec.namespace(), ctx.owner_reference());
        self.written.apply(ctx, &map).await?;
        if !results.contains(&result.name()) {
            results.insert(0, result.name());
            let note = format!(
                "wrote configmap {}/{}",
                report.spec.namespace(),
                result.name()
            );
            ctx.event(Event::normal("ReportWritten", note));
        }
        while results.len() > report.spec.kept() {
            let old = results.last().cloned().unwrap_or_default();
            let key = Key::namespaced(report.spec.namespace(), old);
            if let Some(map) = self.stored.get(ctx, &key).await? {
                self.written.delete(ctx, &*map, Delete::default()).await?;
            }
            results.pop();
        }
        Ok(results)
    }

    /// Brings an account up to now, with the results that are due, and stores it if it changed.
    async fn count(
        &self,
        report: &Report,
        account: &mut Account,
        was_down: bool,
        ctx: &Context<Report>,
    ) -> Result<()> {
        let items = self.items(report, ctx).await?;
        let now = ctx.clock().now().as_millisecond();
        let mut changed = self.sample(report, (account, &items), now, ctx).await?;
        let last = report.spec.reporting_end.as_ref();
        let last = last.map(|end| end.0.as_millisecond());
        while now >= account.end && !account.over {
            let mut closing = account.clone();
            closing.observe(&items, now, was_down);
            account.results = self.publish(report, &closing, ctx).await?;
            changed = true;
            if report.spec.schedule.is_none() || last.is_some_and(|last| account.end >= last) {
                account.over = true;
                account.open.clear();
            } else {
                let end = report.spec.end_after(timestamp(account.end));
                *account = account.next(end.as_millisecond());
            }
        }
        if !account.over {
            changed |= account.observe(&items, now, was_down);
        }
        if changed {
            self.store(report, account, ctx).await?;
        }
        Ok(())
    }
}

impl Reconciler for Reports {
    type Object = Report;

    async fn reconcile(&self, report: &Report, ctx: &Context<Report>) -> Result<Action> {
        let before = report.status.clone().unwrap_or_default();
        let (mut account, was_down) = self.account(report, ctx).await?;
        if !account.over {
            self.count(report, &mut account, was_down, ctx).await?;
        }
        let uid = report.uid().unwrap_or_default();
        self.lock().insert(uid, account.clone());
        ctx.set_status(ReportStatus {
            start: Some(Time(timestamp(account.start))),
            end: (!account.over).then(|| Time(timestamp(account.end))),
            source: source(&account).text().to_owned(),
            results: account.results.clone(),
            ..before
        })?;
        if account.over {
            return Ok(Action::done());
        }
        let mut next = account.end;
        if let Some(last) = account.sampled {
            let due = last + report.spec.sample();
            next = next.min(due.max(self.absent_until.load(Ordering::Relaxed)));
        }
        Ok(Action::done().requeue_at(timestamp(next)))
    }
}

fn is_owned_by(map: &ConfigMap, uid: &str) -> bool {
    map.owner_references().iter().any(|owner| owner.uid == uid)
}

fn account_name(report: &Report) -> String {
    format!("{}-account", report.name_any())
}

fn source(account: &Account) -> Source {
    match account.sampled {
        Some(_) => Source::RequestsAndUse,
        None => Source::Requests,
    }
}

fn timestamp(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::MAX)
}
