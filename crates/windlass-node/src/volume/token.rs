//! Tokens of a pod's ServiceAccount, for the files of projected volumes.
//!
//! A token is bound to the pod, lives as long as the volume asks for (an hour unless it says
//! otherwise), and is asked for anew when four fifths of its life, or a day, have passed.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount, ServiceAccountTokenProjection};
use kube::Api;
use kube::api::PostParams;

/// Kubernetes' default for the life of a token.
const LIFE_SECONDS: i64 = 3600;
/// No token is kept longer.
const DAY: Duration = Duration::from_hours(24);

/// What a token is wanted for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wish {
    audience: Option<String>,
    seconds: i64,
}

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) value: String,
    /// When it should be replaced.
    pub(crate) refresh_at: Timestamp,
}

impl Wish {
    pub(crate) fn of(source: &ServiceAccountTokenProjection) -> Self {
        Self {
            audience: source.audience.clone().filter(|a| !a.is_empty()),
            seconds: source.expiration_seconds.unwrap_or(LIFE_SECONDS),
        }
    }

    /// Asks the API server for a token of the pod's account.
    pub(crate) async fn ask(
        &self,
        accounts: &Api<ServiceAccount>,
        pod: &Pod,
        now: Timestamp,
    ) -> kube::Result<Token> {
        let name = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.service_account_name.as_deref())
            .unwrap_or("default");
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: self.audience.clone().map(|audience| vec![audience]),
                expiration_seconds: Some(self.seconds),
                bound_object_ref: Some(BoundObjectReference {
                    api_version: Some("v1".to_owned()),
                    kind: Some("Pod".to_owned()),
                    name: pod.metadata.name.clone(),
                    uid: pod.metadata.uid.clone(),
                }),
            }),
            ..TokenRequest::default()
        };
        let made = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await?;
        let status = made.status;
        let ends = status
            .as_ref()
            .and_then(|s| s.expiration_timestamp.as_ref());
        let ends = ends.map(|time| time.0);
        let life = ends.map(|ends| ends.duration_since(now));
        let life = life.and_then(|life| Duration::try_from(life).ok());
        let life = life.unwrap_or_default().mul_f64(0.8).min(DAY);
        Ok(Token {
            value: status.and_then(|status| status.token).unwrap_or_default(),
            refresh_at: now.checked_add(life).unwrap_or(Timestamp::MAX),
        })
    }
}

/// The tokens that a pod's volumes need, and the first volume that needs each.
pub(crate) fn wishes(pod: &Pod) -> BTreeMap<Wish, String> {
    let mut wishes = BTreeMap::new();
    for volume in super::volumes(pod) {
        let projected = volume.projected.as_ref();
        let sources = projected.and_then(|projected| projected.sources.as_deref());
        for source in sources.unwrap_or_default() {
            if let Some(token) = &source.service_account_token {
                let name = || volume.name.clone();
                wishes.entry(Wish::of(token)).or_insert_with(name);
            }
        }
    }
    wishes
}
