//! [`Access`]: the API server says who asks, and whether they may.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use http::{Request, StatusCode, header};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};
use tracing::warn;

use super::{Answer, text};

/// How long an answer of the API server holds: a scraper comes every few seconds.
const HOLDS: Duration = Duration::from_mins(1);
/// How long the API server may take to answer.
const REVIEW: Duration = Duration::from_secs(10);
/// How many questions are asked at a time, whoever has them asked; more wait.
const AT_ONCE: usize = 4;
/// How many answers are remembered.
const REMEMBERED: usize = 256;

/// Asks the API server about those who ask us.
pub(super) struct Access {
    client: Client,
    /// What was answered, by token and path.
    known: Mutex<BTreeMap<(String, String), (Instant, Known)>>,
    asking: Semaphore,
}

/// What the API server says of the bearer of a token: whether it may get a path, or none if the
/// token is nobody's.
type Known = Option<bool>;

impl Access {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
            asking: Semaphore::new(AT_ONCE),
        }
    }

    /// Lets the request pass, or says why not.
    pub(super) async fn check<B>(&self, request: &Request<B>) -> Result<(), Box<Answer>> {
        let header = request.headers().get(header::AUTHORIZATION);
        let token = header
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "));
        let Some(token) = token else {
            return refuse(StatusCode::UNAUTHORIZED, "Unauthorized\n");
        };
        let path = request.uri().path();
        let question = (token.to_owned(), path.to_owned());
        if let Some(known) = self.remembered(&question) {
            return verdict(known);
        }
        let failed = match timeout(REVIEW, self.review(token, path)).await {
            Ok(Ok(known)) => {
                self.remember(question, known);
                return verdict(known);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", REVIEW.as_secs()),
        };
        warn!(
            error = failed,
            "cannot ask the API server who may read this"
        );
        let why = "cannot tell whether you may\n";
        refuse(StatusCode::INTERNAL_SERVER_ERROR, why)
    }

    /// Whether the bearer of a token may get a path; none if the token is nobody's.
    async fn review(&self, token: &str, path: &str) -> kube::Result<Known> {
        // The semaphore is never closed.
        let _asking = self.asking.acquire().await;
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let review = reviews.create(&PostParams::default(), &review).await?;
        let status = review.status.unwrap_or_default();
        if status.authenticated != Some(true) {
            return Ok(None);
        }
        let user: UserInfo = status.user.unwrap_or_default();
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                groups: user.groups,
                uid: user.uid,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(path.to_owned()),
                    verb: Some("get".to_owned()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = reviews.create(&PostParams::default(), &review).await?;
        Ok(Some(review.status.is_some_and(|status| status.allowed)))
    }

    fn remembered(&self, question: &(String, String)) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, answer) = known.get(question)?;
        (at.elapsed() < HOLDS).then_some(*answer)
    }

    fn remember(&self, question: (String, String), answer: Known) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (at, _)| at.elapsed() < HOLDS);
        if known.len() < REMEMBERED {
            known.insert(question, (Instant::now(), answer));
        }
    }
}

fn refuse(code: StatusCode, why: &'static str) -> Result<(), Box<Answer>> {
    Err(Box::new(text(code, why)))
}

fn verdict(known: Known) -> Result<(), Box<Answer>> {
    match known {
        Some(true) => Ok(()),
        Some(false) => refuse(StatusCode::FORBIDDEN, "Forbidden\n"),
        None => refuse(StatusCode::UNAUTHORIZED, "Unauthorized\n"),
    }
}
