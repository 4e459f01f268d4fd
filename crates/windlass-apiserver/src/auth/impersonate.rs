//! Acting as somebody else: `Impersonate-User`, `-Group`, `-Uid` and `-Extra-…` headers, each of
//! which the caller needs the verb `impersonate` for.

use std::borrow::Cow;
use std::collections::BTreeMap;

use http::HeaderMap;

use super::{ANONYMOUS, AUTHENTICATED, Action, Identity, ResourceAction, UNAUTHENTICATED, account};
use crate::http::percent_decode;
use crate::server::ApiServer;
use crate::status::{ApiError, Result};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

impl ApiServer {
    /// Who `who` acts as by the headers, if they may.
    pub(crate) fn impersonate<'a>(
        &self,
        who: Cow<'a, Identity>,
        headers: &HeaderMap,
    ) -> Result<Cow<'a, Identity>> {
        let text = |name: &str| {
            let value = headers.get(name)?.to_str().ok()?;
            (!value.is_empty()).then_some(value)
        };
        let groups: Vec<&str> = headers
            .get_all(GROUP)
            .iter()
            .filter_map(|group| group.to_str().ok())
            .collect();
        let extra = extra_values(headers);
        let uid = text(UID);
        let Some(user) = text(USER) else {
            return if groups.is_empty() && extra.is_empty() && uid.is_none() {
                Ok(who)
            } else {
                Err(ApiError::bad_request(
                    "requested groups, a uid or extra values without impersonating a user",
                ))
            };
        };
        let may = |action: ResourceAction<'_>| {
            let action = ResourceAction {
                verb: "impersonate",
                ..action
            };
            self.authorize(&who, &Action::Resource(action))
        };
        let of_account = account::split_user_name(user);
        may(match of_account {
            Some((namespace, name)) => ResourceAction {
                resource: "serviceaccounts",
                namespace,
                name,
                ..ResourceAction::default()
            },
            None => ResourceAction {
                resource: "users",
                name: user,
                ..ResourceAction::default()
            },
        })?;
        for name in &groups {
            may(ResourceAction {
                resource: "groups",
                name,
                ..ResourceAction::default()
            })?;
        }
        for (key, values) in &extra {
            for name in values {
                may(ResourceAction {
                    group: "authentication.k8s.io",
                    resource: "userextras",
                    subresource: key,
                    name,
                    ..ResourceAction::default()
                })?;
            }
        }
        if let Some(name) = uid {
            may(ResourceAction {
                group: "authentication.k8s.io",
                resource: "uids",
                name,
                ..ResourceAction::default()
            })?;
        }
        let mut groups: Vec<String> = groups.into_iter().map(str::to_owned).collect();
        if let (Some((namespace, _)), true) = (of_account, groups.is_empty()) {
            groups = account::group_names(namespace).into();
        }
        complete(&mut groups, user);
        Ok(Cow::Owned(Identity {
            user: user.to_owned(),
            uid: uid.unwrap_or_default().to_owned(),
            groups,
            extra,
        }))
    }
}

/// Everybody is either authenticated or not.
fn complete(groups: &mut Vec<String>, user: &str) {
    let has = |wanted: &str| groups.iter().any(|group| group == wanted);
    if user == ANONYMOUS {
        if !has(UNAUTHENTICATED) {
            groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !has(AUTHENTICATED) && !has(UNAUTHENTICATED) {
        groups.push(AUTHENTICATED.to_owned());
    }
}

fn extra_values(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        if let (Some(key), Ok(value)) = (name.as_str().strip_prefix(EXTRA), value.to_str()) {
            let key = percent_decode(key, false).unwrap_or_else(|| key.to_owned());
            extra.entry(key).or_default().push(value.to_owned());
        }
    }
    extra
}
