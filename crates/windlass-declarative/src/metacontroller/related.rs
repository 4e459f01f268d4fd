//! Related objects: what a customize hook wants to see.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::LabelSelector};
use kube::core::{DynamicObject, Selector};
use serde_json::Value;
use windlass::{
    Declare, Error, Result,
    handle::{Access, Interest, Raw, Verb, Watches},
    kind::KindInfo,
    watch::Select,
};

use super::{
    answer::CUSTOMIZE,
    hook::{HookCaller, Said},
    kinds::{HookVersion, RelatedRule},
    request,
};
use crate::{Objects, RendererContext, engine::key_of};

/// So many answers are kept.
const KEPT: usize = 10_000;

/// Rules, and the generation that they are for.
type Rules = (i64, Arc<Vec<RelatedRule>>);

/// What a customize hook wants to see, watched.
pub(super) struct Related {
    watches: Watches,
    raw: Raw,
    kinds: Mutex<BTreeMap<(String, String), KindInfo>>,
    /// The rules for a parent, by its uid.
    rules: Mutex<BTreeMap<String, Rules>>,
}

impl Related {
    pub(super) fn new(declare: &mut Declare<DynamicObject>, has_hook: bool) -> Self {
        let access = has_hook.then(|| Access::everything(Verb::READ));
        Self {
            watches: declare.watches(access),
            raw: declare.raw([]),
            kinds: Mutex::default(),
            rules: Mutex::default(),
        }
    }

    /// The objects that the hook wants to see for a parent.
    pub(super) async fn objects(
        &self,
        ctx: &RendererContext,
        hook: Option<&HookCaller>,
        controller: &Value,
        kind: &KindInfo,
        parent: &Value,
    ) -> Result<Objects> {
        let mut objects = Objects::new();
        let Some(hook) = hook else {
            return Ok(objects);
        };
        let rules = self.rules(ctx, hook, controller, kind, parent).await?;
        let own = parent
            .pointer("/metadata/namespace")
            .and_then(Value::as_str);
        let within = own.filter(|_| hook.version == HookVersion::V1);
        let mut interests: BTreeMap<KindInfo, Vec<Interest>> = BTreeMap::new();
        let mut plans = Vec::new();
        for rule in rules.iter() {
            let kind = self.kind(ctx, rule).await?;
            let plan = Plan::of(rule, &kind, within).map_err(Error::terminal)?;
            interests
                .entry(kind.clone())
                .or_default()
                .extend(plan.interests());
            if plan.namespaces.is_some() {
                let namespaces = KindInfo::of::<Namespace>();
                interests
                    .entry(namespaces)
                    .or_default()
                    .push(Interest::all());
            }
            plans.push((kind, plan));
        }
        let mut watched = BTreeMap::new();
        let kinds: BTreeSet<KindInfo> = interests.keys().cloned().collect();
        for (kind, interests) in interests {
            let reads = self.watches.start_for(ctx, &kind, interests).await?;
            watched.insert(kind, reads);
        }
        self.watches.keep_only(ctx, &kinds);
        for (kind, plan) in plans {
            objects.declare(&kind);
            let Some(reads) = watched.get(&kind) else {
                continue;
            };
            let mut allowed: Option<BTreeSet<String>> = None;
            if let (Some(selector), Some(namespaces)) =
                (&plan.namespaces, watched.get(&KindInfo::of::<Namespace>()))
            {
                let select = Select::labels(selector.clone()).in_all_namespaces();
                let found = namespaces.list(ctx, select).await?;
                allowed = Some(
                    found
                        .iter()
                        .filter_map(|it| it.metadata.name.clone())
                        .collect(),
                );
            }
            let mut select = Select::labels(plan.labels.clone()).in_all_namespaces();
            if let Some(namespace) = &plan.namespace {
                select = select.in_namespace(namespace);
            }
            for object in reads.list(ctx, select).await? {
                let name = object.metadata.name.as_deref().unwrap_or_default();
                let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
                let is_named = plan.names.is_empty() || plan.names.contains(name);
                if is_named && allowed.as_ref().is_none_or(|all| all.contains(namespace)) {
                    let value = serde_json::to_value(&*object).map_err(Error::other)?;
                    objects.insert(&kind, key_of(&value), Arc::new(value));
                }
            }
        }
        Ok(objects)
    }

    /// The rules for a parent; asked once for each of its generations.
    async fn rules(
        &self,
        ctx: &RendererContext,
        hook: &HookCaller,
        controller: &Value,
        kind: &KindInfo,
        parent: &Value,
    ) -> Result<Arc<Vec<RelatedRule>>> {
        let metadata = &parent["metadata"];
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        let generation = metadata["generation"].as_i64().unwrap_or(0);
        if let Some((of, rules)) = lock(&self.rules).get(&uid)
            && *of == generation
        {
            return Ok(Arc::clone(rules));
        }
        let about = request::about(kind, ctx.key());
        let request = request::customize(controller, parent);
        let now = ctx.clock().now();
        let said = hook.call(&about, &request, CUSTOMIZE, now).await;
        let mut answer = match said.map_err(Error::other)? {
            Said::Answer(answer) => answer,
            Said::Later(after) => {
                let message = format!("customize hook asks to be called again after {after:?}");
                return Err(Error::other(message));
            }
        };
        let rules = match answer["relatedResources"].take() {
            Value::Null => Vec::new(),
            rules => serde_json::from_value(rules).map_err(|error| {
                Error::other(format!(
                    "customize hook failed: invalid relatedResources: {error}"
                ))
            })?,
        };
        let rules = Arc::new(rules);
        let mut known = lock(&self.rules);
        // Those of parents that are gone go with the rest.
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(uid, (generation, Arc::clone(&rules)));
        Ok(rules)
    }

    async fn kind(&self, ctx: &RendererContext, rule: &RelatedRule) -> Result<KindInfo> {
        let name = (rule.rule.api_version.clone(), rule.rule.resource.clone());
        if let Some(known) = lock(&self.kinds).get(&name) {
            return Ok(known.clone());
        }
        let client = self.raw.client(ctx);
        let found = KindInfo::discover_resource(&client, &name.0, &name.1).await?;
        lock(&self.kinds).insert(name, found.clone());
        Ok(found)
    }
}

/// A rule, checked.
struct Plan {
    namespace: Option<String>,
    names: BTreeSet<String>,
    labels: Selector,
    namespaces: Option<Selector>,
}

impl Plan {
    /// `within` is the parent's namespace if it must not see others.
    fn of(rule: &RelatedRule, kind: &KindInfo, within: Option<&str>) -> Result<Self, String> {
        let what = format!("related rule for {kind}");
        let given = rule.namespace.as_deref().filter(|it| !it.is_empty());
        let has_selector = rule.label_selector.is_some() || rule.namespace_selector.is_some();
        if !rule.names.is_empty() && has_selector {
            return Err(format!("{what} has both names and a selector"));
        }
        if given.is_some() && rule.namespace_selector.is_some() {
            return Err(format!("{what} has both namespace and namespaceSelector"));
        }
        if rule.namespace_selector.is_some() && within.is_some() {
            return Err(format!(
                "{what} has a namespaceSelector, which a namespaced parent cannot use in v1"
            ));
        }
        if rule.namespace_selector.is_some() && !kind.namespaced {
            return Err(format!(
                "{what} has a namespaceSelector, but {kind} have no namespace"
            ));
        }
        if let (Some(given), Some(within)) = (given, within)
            && given != within
        {
            return Err(format!(
                "{what} is about namespace {given}, the parent is in {within}"
            ));
        }
        let selector = |of: &LabelSelector| {
            Selector::try_from(of.clone()).map_err(|error| format!("{what}: {error}"))
        };
        let namespace = given.or(within).filter(|_| kind.namespaced);
        Ok(Self {
            namespace: namespace.map(ToOwned::to_owned),
            names: rule.names.iter().cloned().collect(),
            labels: match &rule.label_selector {
                Some(labels) => selector(labels)?,
                None => Selector::default(),
            },
            namespaces: rule.namespace_selector.as_ref().map(selector).transpose()?,
        })
    }

    fn interests(&self) -> Vec<Interest> {
        let mut interest = Interest::all().labels(&self.labels);
        if let Some(namespace) = &self.namespace {
            interest = interest.namespace(namespace);
        }
        for name in &self.names {
            interest = interest.name(name);
        }
        vec![interest]
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
