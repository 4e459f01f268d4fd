//! What can be done with objects: one module per verb, the same for every kind.

mod admit;
mod apply;
mod change;
mod create;
mod delete;
mod list;
mod ownership;
mod patch;
mod present;
mod scale;
mod update;
mod watch;
mod write;

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http::header::USER_AGENT;

use crate::auth::{Identity, account, review};
use crate::decode::FieldValidation;
use crate::http::{Answer, Query, ResourceRequest, Verb, Wanted, decode_object};
use crate::json::Document;
use crate::resource::Resource;
use crate::server::ApiServer;
use crate::status::{ApiError, Cause, Result, Subject, field};
use crate::store::{Key, Stored};
use crate::webhook::Warnings;

/// One request for a resource, with everything needed to answer it.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a ApiServer,
    pub(crate) who: &'a Identity,
    pub(crate) request: &'a ResourceRequest,
    pub(crate) resource: Arc<Resource>,
    pub(crate) query: Query,
    headers: &'a HeaderMap,
    body: Bytes,
    pub(crate) wanted: Wanted,
    dry_run: bool,
    field_validation: FieldValidation,
    /// What webhooks warn about.
    warnings: Warnings,
}

impl<'a> Call<'a> {
    #[allow(clippy::too_many_arguments, reason = "each is one part of the request")]
    pub(crate) fn new(
        server: &'a ApiServer,
        who: &'a Identity,
        request: &'a ResourceRequest,
        resource: Arc<Resource>,
        query: Query,
        headers: &'a HeaderMap,
        body: Bytes,
        wanted: Wanted,
    ) -> Result<Self> {
        let asked: Vec<&str> = query.all("dryRun").iter().map(String::as_str).collect();
        let dry_run = parse_dry_run(&asked, options_kind(request.verb))?;
        let field_validation = FieldValidation::from_query(&query).map_err(|other| {
            let allowed = ["", "Ignore", "Strict", "Warn"].map(|value| format!("\"{value}\""));
            let cause = field::not_supported("fieldValidation", &other.into(), &allowed);
            invalid_options(options_kind(request.verb), &[cause])
        })?;
        Ok(Self {
            server,
            who,
            request,
            resource,
            query,
            headers,
            body,
            wanted,
            dry_run,
            field_validation,
            warnings: Warnings::default(),
        })
    }

    /// What webhooks had to say, besides the answer.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    /// Does what is asked.
    pub(crate) async fn run(&self) -> Result<Answer> {
        if let Some(name) = &self.request.subresource {
            return self.run_subresource(name).await;
        }
        let named = self.request.name.is_some();
        if !self.resource.is_stored() {
            return review::run(self);
        }
        if self.resource.namespaced
            && self.request.namespace.is_none()
            && (named || self.request.verb.writes())
        {
            return Err(ApiError::method_not_allowed());
        }
        match self.request.verb {
            Verb::Get => self.get().await,
            Verb::List => self.list().await,
            Verb::Watch => self.watch().await,
            Verb::Create if named => Err(ApiError::method_not_allowed()),
            Verb::Create => self.create().await,
            Verb::Update if named => self.update("").await,
            Verb::Patch if named => self.patch("").await,
            Verb::Update | Verb::Patch => Err(ApiError::method_not_allowed()),
            Verb::Delete => self.delete().await,
            Verb::DeleteCollection => self.delete_collection().await,
        }
    }

    async fn run_subresource(&self, name: &str) -> Result<Answer> {
        let subresource = self
            .resource
            .subresource(name)
            .ok_or_else(ApiError::resource_not_found)?;
        if !subresource
            .verbs
            .iter()
            .any(|verb| verb == self.request.verb.as_str())
        {
            return Err(ApiError::method_not_allowed());
        }
        match (name, self.request.verb) {
            ("log", Verb::Get) => crate::node::logs(self).await,
            ("binding", Verb::Create) => self.bind().await,
            ("token", Verb::Create) => account::create_token(self),
            ("scale", Verb::Get) => self.get_scale().await,
            ("scale", Verb::Update) => self.update_scale().await,
            ("scale", Verb::Patch) => self.patch_scale().await,
            (_, Verb::Get) => self.get().await,
            (_, Verb::Update) => self.update(name).await,
            (_, Verb::Patch) => self.patch(name).await,
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    async fn get(&self) -> Result<Answer> {
        let found = self.find()?;
        self.present(&found).await
    }

    /// The name in the path.
    pub(crate) fn name(&self) -> &str {
        self.request.name.as_deref().unwrap_or_default()
    }

    pub(crate) fn namespace(&self) -> &str {
        self.request.namespace.as_deref().unwrap_or_default()
    }

    fn key(&self) -> Key {
        Key::new(self.namespace(), self.name())
    }

    /// The object the path names.
    pub(crate) fn find(&self) -> Result<Arc<Stored>> {
        self.server
            .store()
            .get(&self.resource.table, &self.key())
            .ok_or_else(|| self.not_found())
    }

    fn not_found(&self) -> ApiError {
        ApiError::not_found(self.resource.subject(), self.name())
    }

    /// The body as an object of some kind.
    pub(crate) fn decode_as(&self, kind: &str) -> Result<Document> {
        decode_object(self.headers, &self.body, kind)
    }

    /// Who is recorded as the writer: the name given, or the program's own.
    pub(crate) fn field_manager(&self) -> String {
        if let Some(manager) = self.query.get("fieldManager") {
            manager.to_owned()
        } else {
            let agent = self
                .headers
                .get(USER_AGENT)
                .and_then(|agent| agent.to_str().ok())
                .unwrap_or_default();
            let program = agent.split('/').next().unwrap_or_default();
            if program.is_empty() {
                "unknown".to_owned()
            } else {
                program.to_owned()
            }
        }
    }
}

/// The kind Kubernetes gives the options of a verb, which errors about them name.
fn options_kind(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "GetOptions",
        Verb::List | Verb::Watch => "ListOptions",
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        Verb::Delete | Verb::DeleteCollection => "DeleteOptions",
    }
}

/// What is wrong with the options of a request.
fn invalid_options(kind: &'static str, causes: &[Cause]) -> ApiError {
    let subject = Subject {
        group: "meta.k8s.io",
        kind,
    };
    ApiError::invalid(subject, "", causes)
}

/// Whether nothing is to be stored: `All` is the only way to say so.
fn parse_dry_run(asked: &[&str], kind: &'static str) -> Result<bool> {
    match asked {
        [] => Ok(false),
        all if all.iter().all(|one| *one == "All") => Ok(true),
        other => {
            let cause =
                field::not_supported("dryRun", &serde_json::json!(other), &["\"All\"".to_owned()]);
            Err(invalid_options(kind, &[cause]))
        }
    }
}

/// A whole number of the query, with Go's words when it is none.
fn parse_int(text: &str) -> Result<i64> {
    text.parse().map_err(|_| {
        ApiError::bad_request(format!(
            "strconv.ParseInt: parsing {text:?}: invalid syntax"
        ))
    })
}
