//! Role-based access control: who may do what, by the roles bound to them.
//!
//! Roles and bindings are objects like any other; what they say is kept here in a form that a
//! request is judged by without reading any of them. A [`Policy`] holds the rules of each role,
//! and for each user and group what is bound to it, cluster-wide and by namespace: a request looks
//! at what its user and groups have there and at nothing else. It is brought up to date by the
//! write that changes a role or a binding, before that write is answered. The object is read again
//! under the policy's own lock, so that of two racing writes the later one is what stays.
//!
//! Members of `system:masters` may do everything, whatever the roles say.

mod aggregation;
pub(crate) mod escalation;
mod rule;
mod rules;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use serde_json::Value;

pub(crate) use aggregation::aggregated;
pub(crate) use rule::Rule;
use rules::Rules;

use super::{Action, Identity};
use crate::object::meta;
use crate::server::ApiServer;
use crate::store::{Key, Store, TableName};
use crate::verbs::selector::Selector;

pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";
/// Who may do everything.
const MASTERS: &str = "system:masters";

/// What a binding gives, and to whom, for the sentence that says so.
#[derive(Debug)]
pub(crate) struct Grant {
    binding: Key,
    /// A `ClusterRole` has no namespace.
    role: Key,
    subject: String,
}

impl Grant {
    /// Why something is allowed.
    pub(crate) fn reason(&self) -> String {
        let kind = if self.role.namespace().is_empty() {
            "ClusterRole"
        } else {
            "Role"
        };
        let (namespace, name) = (self.binding.namespace(), self.binding.name());
        let binding = if namespace.is_empty() {
            format!("ClusterRoleBinding {name:?}")
        } else {
            format!("RoleBinding {:?}", format!("{name}/{namespace}"))
        };
        format!(
            "RBAC: allowed by {binding} of {kind} {:?} to {}",
            self.role.name(),
            self.subject
        )
    }
}

/// What is bound to one user or group, by the names of the bindings.
#[derive(Clone, Debug, Default)]
struct Grants {
    everywhere: BTreeMap<Key, Arc<Grant>>,
    by_namespace: HashMap<String, BTreeMap<Key, Arc<Grant>>>,
}

impl Grants {
    fn in_namespace<'a>(&'a self, namespace: &str) -> impl Iterator<Item = &'a Arc<Grant>> {
        let local = self
            .by_namespace
            .get(namespace)
            .filter(|_| !namespace.is_empty());
        let local = local.into_iter().flat_map(BTreeMap::values);
        self.everywhere.values().chain(local)
    }

    fn remove(&mut self, binding: &Key) {
        if binding.namespace().is_empty() {
            self.everywhere.remove(binding);
        } else if let Some(local) = self.by_namespace.get_mut(binding.namespace()) {
            local.remove(binding);
        }
    }

    fn insert(&mut self, grant: Arc<Grant>) {
        let key = grant.binding.clone();
        let place = if key.namespace().is_empty() {
            &mut self.everywhere
        } else {
            let namespace = key.namespace().to_owned();
            self.by_namespace.entry(namespace).or_default()
        };
        // Of several subjects that are one user the first is named.
        place.entry(key).or_insert(grant);
    }
}

/// Who a binding is for: a user (a `ServiceAccount` is one too) or a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    User(String),
    Group(String),
}

/// Everything roles and bindings say.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    /// Rules by role; the namespace of a `ClusterRole` is empty.
    roles: HashMap<Key, Arc<Rules>>,
    users: HashMap<String, Grants>,
    groups: HashMap<String, Grants>,
    /// Whom each binding is for, to take it off them.
    holders: HashMap<Key, BTreeSet<Holder>>,
    /// What aggregated roles gather.
    aggregations: BTreeMap<String, Vec<Selector>>,
    /// What they gather by: the labels of every `ClusterRole`.
    labels: BTreeMap<String, BTreeMap<String, String>>,
}

/// The answer to whether somebody may do something.
pub(crate) enum Judgement {
    /// The one who asks is above roles.
    Master,
    Allowed(Arc<Grant>),
    /// No; with the bindings' roles that are missing.
    Denied(Vec<String>),
}

impl Judgement {
    pub(crate) fn is_allowed(&self) -> bool {
        !matches!(self, Self::Denied(_))
    }

    /// Why, as far as roles have something to do with it.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Master => String::new(),
            Self::Allowed(grant) => grant.reason(),
            Self::Denied(missing) => match missing.as_slice() {
                [] => String::new(),
                [one] => format!("RBAC: {one}"),
                many => format!("RBAC: [{}]", many.join(", ")),
            },
        }
    }
}

/// The authorizer.
#[derive(Debug)]
pub(crate) struct Rbac(RwLock<Policy>);

impl Rbac {
    /// Judges by `policy` until a write changes it.
    pub(crate) fn new(policy: Policy) -> Self {
        Self(RwLock::new(policy))
    }

    /// Forgets what it knew for what `policy` says.
    pub(crate) fn replace(&self, policy: Policy) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = policy;
    }

    /// What it knows.
    pub(crate) fn policy(&self) -> Policy {
        self.read().clone()
    }

    fn read(&self) -> RwLockReadGuard<'_, Policy> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `who` may do `action`.
    pub(crate) fn judge(&self, who: &Identity, action: &Action<'_>) -> Judgement {
        if who.groups.iter().any(|group| group == MASTERS) {
            return Judgement::Master;
        }
        let policy = self.read();
        let mut missing = BTreeSet::new();
        for grant in policy.grants_of(who, action.namespace()) {
            match policy.rules_of(grant) {
                Some(rules) if rules.allow(action) => {
                    return Judgement::Allowed(grant.clone());
                }
                Some(_) => {}
                None => {
                    missing.insert(not_found(&grant.role));
                }
            }
        }
        Judgement::Denied(missing.into_iter().collect())
    }

    /// All rules `who` has in a namespace.
    pub(crate) fn rules_for(&self, who: &Identity, namespace: &str) -> Vec<Rule> {
        let mut rules = Vec::new();
        if who.groups.iter().any(|group| group == MASTERS) {
            rules.extend(Rule::everything());
        }
        rules.extend(self.granted_rules(who, namespace));
        rules
    }

    /// Those of them that bindings grant, which is what is told.
    pub(crate) fn granted_rules(&self, who: &Identity, namespace: &str) -> Vec<Rule> {
        let policy = self.read();
        let mut rules = Vec::new();
        for grant in policy.grants_of(who, namespace) {
            let of_grant = policy.rules_of(grant);
            rules.extend(of_grant.into_iter().flat_map(|rules| rules.iter()).cloned());
        }
        rules
    }

    /// The rules of a role; `None` when there is no such role.
    fn rules_of_role(&self, role: &Key) -> Option<Arc<Rules>> {
        self.read().roles.get(role).cloned()
    }

    /// Takes over what a binding says now.
    fn refresh_binding(&self, store: &Store, table: &TableName, key: &Key) {
        let mut policy = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let found = store.get(table, key).map(|stored| stored.value());
        policy.set_binding(key, found.as_ref());
    }

    /// Takes over what a role says now; returns whether aggregated roles may have to change.
    fn refresh_role(&self, store: &Store, table: &TableName, key: &Key) -> bool {
        let mut policy = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let found = store.get(table, key).map(|stored| stored.value());
        let was_gathered = policy.is_gathered(key);
        policy.set_role(key, found.as_ref());
        was_gathered || policy.is_gathered(key)
    }
}

impl Policy {
    /// What these roles and bindings say.
    pub(crate) fn of<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut policy = Self::default();
        for object in objects {
            let key = Key::new(meta(object, "namespace"), meta(object, "name"));
            match object["kind"].as_str() {
                Some("ClusterRole" | "Role") => policy.set_role(&key, Some(object)),
                _ => policy.set_binding(&key, Some(object)),
            }
        }
        policy
    }

    fn grants_of<'a>(
        &'a self,
        who: &'a Identity,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Grant>> {
        let of_groups = who.groups.iter().filter_map(|group| self.groups.get(group));
        self.users
            .get(&who.user)
            .into_iter()
            .chain(of_groups)
            .flat_map(move |grants| grants.in_namespace(namespace))
    }

    fn rules_of(&self, grant: &Grant) -> Option<&Rules> {
        self.roles.get(&grant.role).map(|rules| &**rules)
    }

    /// Whether a role gathers others, or is gathered itself.
    fn is_gathered(&self, key: &Key) -> bool {
        let labels = self.labels.get(key.name());
        let labels = labels.filter(|_| key.namespace().is_empty());
        labels.is_some_and(|labels| {
            self.aggregations.contains_key(key.name())
                || self
                    .aggregations
                    .values()
                    .flatten()
                    .any(|selector| selector.matches_labels(labels))
        })
    }

    fn set_role(&mut self, key: &Key, role: Option<&Value>) {
        let of_cluster = key.namespace().is_empty();
        if of_cluster {
            self.aggregations.remove(key.name());
            self.labels.remove(key.name());
        }
        let Some(role) = role else {
            self.roles.remove(key);
            return;
        };
        let rules = Rules::new(Rule::all_of(role));
        self.roles.insert(key.clone(), Arc::new(rules));
        if !of_cluster {
            return;
        }
        let labels = role["metadata"]["labels"].as_object().into_iter().flatten();
        let labels = labels
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        self.labels.insert(key.name().to_owned(), labels);
        let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
        if let Some(selectors) = selectors {
            let selectors = selectors.iter().map(Selector::from_object).collect();
            self.aggregations.insert(key.name().to_owned(), selectors);
        }
    }

    fn set_binding(&mut self, key: &Key, binding: Option<&Value>) {
        for holder in self.holders.remove(key).unwrap_or_default() {
            let grants = match &holder {
                Holder::User(user) => self.users.get_mut(user),
                Holder::Group(group) => self.groups.get_mut(group),
            };
            if let Some(grants) = grants {
                grants.remove(key);
            }
        }
        let Some(binding) = binding else {
            return;
        };
        let subjects = binding["subjects"].as_array().into_iter().flatten();
        for subject in subjects {
            let text = |field: &str| subject[field].as_str().unwrap_or_default();
            let name = text("name");
            let namespace = match text("namespace") {
                "" => key.namespace(),
                namespace => namespace,
            };
            let (holder, shown) = match text("kind") {
                "User" => (Holder::User(name.to_owned()), format!("User {name:?}")),
                "Group" => (Holder::Group(name.to_owned()), format!("Group {name:?}")),
                "ServiceAccount" if !namespace.is_empty() => (
                    Holder::User(super::account::user_name(namespace, name)),
                    format!("ServiceAccount {:?}", format!("{name}/{namespace}")),
                ),
                _ => continue,
            };
            let grant = Arc::new(Grant {
                binding: key.clone(),
                role: referred(binding, key.namespace()),
                subject: shown,
            });
            let grants = match &holder {
                Holder::User(user) => self.users.entry(user.clone()).or_default(),
                Holder::Group(group) => self.groups.entry(group.clone()).or_default(),
            };
            grants.insert(grant);
            self.holders.entry(key.clone()).or_default().insert(holder);
        }
    }
}

/// The role a binding in `namespace` refers to.
fn referred(binding: &Value, namespace: &str) -> Key {
    let reference = &binding["roleRef"];
    let of_cluster = reference["kind"] == "ClusterRole";
    let name = reference["name"].as_str().unwrap_or_default();
    Key::new(if of_cluster { "" } else { namespace }, name)
}

/// What is said of a role that a binding refers to and that is not there.
fn not_found(role: &Key) -> String {
    let kind = if role.namespace().is_empty() {
        "clusterrole"
    } else {
        "role"
    };
    format!("{kind}.{GROUP} {:?} not found", role.name())
}

/// What follows from a write to a role.
pub(crate) fn role_written(server: &ApiServer, table: &TableName, key: &Key) {
    if server.rbac().refresh_role(server.store(), table, key) {
        aggregation::run(server);
    }
}

/// What follows from a write to a binding.
pub(crate) fn binding_written(server: &ApiServer, table: &TableName, key: &Key) {
    server.rbac().refresh_binding(server.store(), table, key);
}
