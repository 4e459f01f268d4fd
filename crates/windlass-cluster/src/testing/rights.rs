//! Rights of operators: which of them a scenario uses, and that each of them is needed.
//!
//! A role is minimal when nothing can be taken from it. So the scenario is replayed once per verb
//! on a resource that the operator declares, on a fresh cluster, without that one right: the API
//! server must refuse something for it, and the operator's own check must name it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::{Instant, timeout};
use windlass::Operator;
use windlass::manifests::Description;
use windlass_apiserver::http::Verb;

use super::cluster::TestCluster;
use super::faults::{Request, user_of};

/// How much longer than usual a scenario may take that misses a right, in virtual time: an operator
/// that waits for what it may not have does so for ever.
const PATIENCE: Duration = Duration::from_mins(1);

/// A verb on a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    group: String,
    resource: String,
    verb: String,
}

impl Right {
    /// Everything an operator declares, each once.
    fn all(description: &Description) -> BTreeSet<Self> {
        let rules = description.rules();
        let rights = rules.flat_map(|rule| {
            rule.verbs.iter().map(|verb| Self {
                group: rule.group.clone(),
                resource: rule.resource.clone(),
                verb: verb.clone(),
            })
        });
        rights.collect()
    }

    /// The resource as requests are noted.
    fn target(&self) -> String {
        let (resource, sub) = match self.resource.split_once('/') {
            Some((resource, sub)) => (resource, format!("/{sub}")),
            None => (self.resource.as_str(), String::new()),
        };
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{resource}{dot}{}{sub}", self.group)
    }

    /// Whether a request needs it: an apply that creates needs the right to create as well.
    fn is_needed_by(&self, request: &Request) -> bool {
        let creates = request.verb == Verb::Patch && self.verb == "create";
        request.resource == self.target()
            && (request.verb.as_str() == self.verb
                || (creates && matches!(request.code, 201 | 403)))
    }

    /// What is left of an operator's rules without it.
    fn removed_from(&self, mut description: Description) -> Description {
        let parts = description
            .controllers
            .iter_mut()
            .chain(&mut description.tasks)
            .chain(&mut description.serving);
        for part in parts {
            for rule in &mut part.rules {
                if rule.group == self.group && rule.resource == self.resource {
                    rule.verbs.remove(&self.verb);
                }
            }
            // A rule without verbs is refused.
            part.rules.retain(|rule| !rule.verbs.is_empty());
        }
        description
    }
}

/// As an operator's own check names it.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{} {}{dot}{}", self.verb, self.resource, self.group)
    }
}

impl TestCluster {
    /// What an operator declares and has not used so far in this cluster, as `verb resource.group`.
    pub fn unused_rights(&self, operator: &Operator) -> Vec<String> {
        let requests = self.requests_of(operator.name());
        let used = |right: &Right| requests.iter().any(|request| right.is_needed_by(request));
        Right::all(&operator.description())
            .iter()
            .filter(|right| !used(right))
            .map(ToString::to_string)
            .collect()
    }

    /// Replays `scenario` once per right of this cluster's operators, without it; panics when one
    /// turns out not to be needed, or when what is refused does not name it.
    ///
    /// `exceptions` are rights that this scenario cannot show to be needed, each with the reason;
    /// one that it does show is an exception too many, and panics as well. Answers how many rights
    /// were shown to be needed.
    pub async fn every_right_is_needed<F, Fut>(
        &self,
        exceptions: &[(&str, &str)],
        scenario: F,
    ) -> usize
    where
        F: Fn(TestCluster) -> Fut,
        Fut: Future<Output = ()>,
    {
        let exceptions: BTreeMap<&str, &str> = exceptions.iter().copied().collect();
        let begun = Instant::now();
        let whole = self.fresh().await;
        scenario(whole.clone()).await;
        whole.settle().await;
        drop(whole);
        let limit = begun.elapsed() + PATIENCE;
        let mut shown = 0;
        let (mut needless, mut needed) = (Vec::new(), Vec::new());
        for (index, operator) in self.operators().iter().enumerate() {
            for right in Right::all(&operator.description()) {
                let name = right.to_string();
                println!("without {name}");
                let refused = self.without(index, &right, limit, &scenario).await;
                match (refused, exceptions.get(name.as_str())) {
                    (true, None) => shown += 1,
                    (true, Some(_)) => needed.push(name),
                    (false, Some(why)) => println!("not shown to be needed: {name}: {why}"),
                    (false, None) => needless.push(name),
                }
            }
        }
        assert!(
            needless.is_empty(),
            "nothing failed without these rights; the role asks for too much, or the scenario is too short: {needless:#?}"
        );
        assert!(
            needed.is_empty(),
            "these rights are needed, and no exceptions: {needed:#?}"
        );
        assert!(
            shown > 0,
            "no right was taken away: start an operator first"
        );
        println!("{shown} rights, each shown to be needed");
        shown
    }

    /// Plays the scenario without one right of the operator that was started as the `index`-th;
    /// answers whether it was missed.
    async fn without<F, Fut>(
        &self,
        index: usize,
        right: &Right,
        limit: Duration,
        scenario: &F,
    ) -> bool
    where
        F: Fn(TestCluster) -> Fut,
        Fut: Future<Output = ()>,
    {
        let cluster = Self::new(self.seed()).await;
        let operator = &self.operators()[index];
        // Whatever ends the scenario early is what a missing right may do.
        let play = async {
            for (at, origin) in self.origins().into_iter().enumerate() {
                let rules = (at == index).then(|| right.removed_from(operator.description()));
                cluster.start_origin(origin, rules.as_ref()).await;
            }
            scenario(cluster.clone()).await;
            cluster.settle().await;
        };
        let ended = AssertUnwindSafe(timeout(limit, play)).catch_unwind().await;
        let refused = |request: &&Request| request.code == 403;
        let requests = cluster.requests_of(operator.name());
        let missed = requests
            .iter()
            .filter(refused)
            .any(|request| right.is_needed_by(request));
        if let (Err(panic), false) = (&ended, missed) {
            let text = panic.downcast_ref::<String>().map_or("", String::as_str);
            panic!(
                "without {right} of {}, something else failed: {text}",
                user_of(operator.name())
            );
        }
        let client = cluster.client_as(operator.name());
        match operator.missing_rights(&client).await {
            Ok(missing) => assert_eq!(
                missing,
                [right.to_string()],
                "the operator's own check names what is missing"
            ),
            Err(error) => panic!("the operator cannot check its rights: {error}"),
        }
        missed
    }
}
