//! Acting as somebody else: `Impersonate-User`, `-Group`, `-Uid` and `-Extra-…` headers.
//!
//! There are several ways to be allowed that, tried one after the other. The constrained ones ask
//! for `impersonate:<mode>` on every part of who is to be impersonated, and for
//! `impersonate-on:<mode>:<verb>` on what is then done; the old one for plain `impersonate` on the
//! parts alone. When none allows it, the caller hears what the first one missed.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue};

use super::{ANONYMOUS, AUTHENTICATED, Action, Identity, ResourceAction, UNAUTHENTICATED, account};
use crate::http::percent_decode;
use crate::names;
use crate::server::ApiServer;
use crate::status::{ApiError, Result};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
/// Where constrained modes look for users and groups; the old one has them in the core group.
const CONSTRAINED_GROUP: &str = "authentication.k8s.io";

impl ApiServer {
    /// Who `who` acts as by the headers, if they may, for `action`.
    pub(crate) fn impersonate(
        &self,
        who: Arc<Identity>,
        headers: &HeaderMap,
        action: &Action<'_>,
    ) -> Result<Arc<Identity>> {
        let Some(wanted) = wanted(headers)? else {
            return Ok(who);
        };
        let mut refused = None;
        if let Some(mode) = constrained_mode(&wanted) {
            let on = format!("impersonate-on:{mode}:{}", action.verb());
            let allowed = self
                .authorize(&who, &action.with_verb(&on))
                .and_then(|()| self.may_be(&who, &wanted, &format!("impersonate:{mode}"), true));
            match allowed {
                Ok(()) => return Ok(Arc::new(complete(wanted, true))),
                Err(error) => refused = Some(error),
            }
        }
        match self.may_be(&who, &wanted, "impersonate", false) {
            Ok(()) => Ok(Arc::new(complete(wanted, false))),
            Err(error) => Err(refused.unwrap_or(error)),
        }
    }

    /// Whether `who` has `verb` on every part of `wanted`.
    fn may_be(
        &self,
        who: &Identity,
        wanted: &Identity,
        verb: &str,
        constrained: bool,
    ) -> Result<()> {
        let may = |action: ResourceAction<'_>| {
            self.authorize(who, &Action::Resource(ResourceAction { verb, ..action }))
        };
        let group = if constrained { CONSTRAINED_GROUP } else { "" };
        let node = node_name(&wanted.user).filter(|_| constrained);
        may(match (account::split_user_name(&wanted.user), node) {
            (Some((namespace, name)), _) => ResourceAction {
                group,
                resource: "serviceaccounts",
                namespace,
                name,
                ..ResourceAction::default()
            },
            (None, Some(name)) => ResourceAction {
                group,
                resource: "nodes",
                name,
                ..ResourceAction::default()
            },
            (None, None) => ResourceAction {
                group,
                resource: "users",
                name: &wanted.user,
                ..ResourceAction::default()
            },
        })?;
        if !wanted.uid.is_empty() {
            may(ResourceAction {
                group: CONSTRAINED_GROUP,
                resource: "uids",
                name: &wanted.uid,
                ..ResourceAction::default()
            })?;
        }
        for name in &wanted.groups {
            let action = ResourceAction {
                verb,
                group,
                resource: "groups",
                name,
                ..ResourceAction::default()
            };
            if constrained && (name.is_empty() || name == "system:masters") {
                let why = match name.as_str() {
                    "" => "impersonating the empty string group is not allowed",
                    _ => "impersonating the system:masters group is not allowed",
                };
                return Err(Action::Resource(action).refusal(who, why));
            }
            may(action)?;
        }
        for (key, values) in &wanted.extra {
            for name in values {
                may(ResourceAction {
                    group: CONSTRAINED_GROUP,
                    resource: "userextras",
                    subresource: key,
                    name,
                    ..ResourceAction::default()
                })?;
            }
        }
        Ok(())
    }
}

/// Whom the headers name, as they name them; `None` when they name nobody.
fn wanted(headers: &HeaderMap) -> Result<Option<Identity>> {
    let one = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let wanted = Identity {
        user: one(USER),
        uid: one(UID),
        groups: headers.get_all(GROUP).iter().map(text).collect(),
        extra: extra_values(headers),
    };
    if !wanted.user.is_empty() {
        return Ok(Some(wanted));
    }
    if wanted == Identity::default() {
        return Ok(None);
    }
    Err(ApiError::bad_request(format!(
        "requested {} without impersonating a user name",
        shown(&wanted)
    )))
}

/// What a header says. Names are of any characters: one that cannot be read must still be somebody
/// else than the caller, so bytes that are no text are replaced, and nothing is left out.
fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// An identity as Go prints the struct it has for it.
fn shown(wanted: &Identity) -> String {
    let list = |values: &[String]| {
        let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        format!("{{{}}}", values.join(", "))
    };
    let groups = match wanted.groups.as_slice() {
        [] => "(nil)".to_owned(),
        groups => list(groups),
    };
    let extra = if wanted.extra.is_empty() {
        "(nil)".to_owned()
    } else {
        let entries = wanted.extra.iter();
        let entries: Vec<String> = entries
            .map(|(key, values)| format!("{key:?}:[]string{}", list(values)))
            .collect();
        format!("{{{}}}", entries.join(", "))
    };
    format!(
        "&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:[]string{groups}, Extra:map[string][]string{extra}}}",
        wanted.user, wanted.uid
    )
}

/// The constrained mode that somebody can be impersonated in. Of nodes and accounts only the name
/// can be asked for there: the rest follows from it.
fn constrained_mode(wanted: &Identity) -> Option<&'static str> {
    let only_named = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
    let is_node = node_name(&wanted.user).is_some();
    let is_account = account::split_user_name(&wanted.user).is_some();
    match (is_node, is_account) {
        (true, _) => only_named.then_some("arbitrary-node"),
        (false, true) => only_named.then_some("serviceaccount"),
        (false, false) => Some("user-info"),
    }
}

fn node_name(user: &str) -> Option<&str> {
    let name = user.strip_prefix("system:node:")?;
    names::subdomain_errors(name).is_empty().then_some(name)
}

/// Adds the groups that follow from who it is: everybody is either authenticated or not.
fn complete(mut wanted: Identity, constrained: bool) -> Identity {
    if wanted.groups.is_empty() {
        if let Some((namespace, _)) = account::split_user_name(&wanted.user) {
            wanted.groups = account::group_names(namespace).into();
        } else if constrained && node_name(&wanted.user).is_some() {
            wanted.groups = vec!["system:nodes".to_owned()];
        }
    }
    let has = |group: &str| wanted.groups.iter().any(|has| has == group);
    if wanted.user == ANONYMOUS {
        if !has(UNAUTHENTICATED) {
            wanted.groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !has(AUTHENTICATED) && !has(UNAUTHENTICATED) {
        wanted.groups.push(AUTHENTICATED.to_owned());
    }
    wanted
}

fn extra_values(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let key = percent_decode(key, false).unwrap_or_else(|| key.to_owned());
            extra.entry(key).or_default().push(text(value));
        }
    }
    extra
}
