//! What can be done with objects: one module per verb, the same for every kind.

mod admit;
mod apply;
mod binding;
mod create;
pub(crate) mod delete;
mod eviction;
mod list;
mod options;
mod ownership;
mod patch;
mod pipeline;
mod present;
mod reservation;
mod scale;
pub(crate) mod selector;
mod update;
mod watch;
mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::HeaderMap;
use http::header::USER_AGENT;

use crate::auth::{Action, Identity, ResourceAction, account, review};
use crate::decode::FieldValidation;
use crate::http::warnings::Warnings;
use crate::http::{
    Answer, Expected, Query, ResourceRequest, Verb, Wanted, decode_object, media_type,
};
use crate::json::Document;
use crate::node::{self, Upgrade};
use crate::patch::PatchKind;
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::status::{ApiError, Result};
use crate::store::{Key, Stored};
use options::Options;

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
    /// The connection, when it is to become something else.
    pub(crate) upgrade: Upgrade,
    dry_run: bool,
    field_validation: FieldValidation,
    /// What is wrong with its options, told once it is known that the request has somewhere to go.
    refused: Option<ApiError>,
    /// What the client is told besides, whatever comes of the request.
    warnings: Warnings,
    /// Whether it names the uid or the version of the object that it means.
    guarded: AtomicBool,
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
        upgrade: Upgrade,
    ) -> Self {
        let options = Options::read(&query, request.verb, media_type(headers));
        let refused = options.as_ref().err().cloned();
        let options = options.unwrap_or_default();
        Self {
            server,
            who,
            request,
            resource,
            query,
            headers,
            body,
            wanted,
            upgrade,
            dry_run: options.dry_run,
            field_validation: options.field_validation,
            refused,
            warnings: Warnings::default(),
            guarded: AtomicBool::new(false),
        }
    }

    /// Notes that the request names the uid or the version of the object that it means, if it does.
    pub(crate) fn note_guard(&self, guarded: bool) {
        self.guarded.fetch_or(guarded, Ordering::Relaxed);
    }

    /// Whether it does.
    pub(crate) fn is_guarded(&self) -> bool {
        self.guarded.load(Ordering::Relaxed)
    }

    /// Tells the client something besides the answer, the same once.
    pub(crate) fn warn(&self, said: impl IntoIterator<Item = String>) {
        self.warnings.add(said);
    }

    /// All that was to be told.
    pub(crate) fn into_warnings(self) -> Vec<String> {
        self.warnings.into_all()
    }

    /// Does what is asked.
    pub(crate) async fn run(&self) -> Result<Answer> {
        let custom = self.resource.custom.as_ref();
        self.warn(custom.and_then(|custom| custom.deprecation.clone()));
        // A patch of no known kind is turned away before anybody looks at the resource.
        let patched = self.request.verb != Verb::Patch
            || PatchKind::from_media_type(media_type(self.headers), true).is_ok();
        let below = self.request.subresource.as_deref();
        let named = self.request.name.is_some();
        let routed = patched
            && match self.request.verb {
                Verb::Create => !named || below.is_some(),
                Verb::Update | Verb::Patch => named,
                _ => true,
            }
            && below.is_none_or(|name| self.resource.subresource(name).is_some());
        if routed && let Some(warning) = self.resource.strategy.request_warning() {
            self.warn([warning.to_owned()]);
        }
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        if let Some(refusal) = self.refuse_empty_segments() {
            return refusal;
        }
        if let Some(name) = &self.request.subresource {
            return self.run_subresource(name).await;
        }
        if self.resource.strategy.binds_pods() {
            return match self.request.verb {
                Verb::Create if !named => self.bind_named().await,
                _ => Err(ApiError::method_not_allowed()),
            };
        }
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
            Verb::Watch => self.watch(),
            Verb::Create if named && !self.resource.is_custom() => {
                Err(ApiError::method_not_allowed())
            }
            Verb::Create => self.create().await,
            Verb::Update if named => self.update("").await,
            Verb::Patch if named => self.patch("").await,
            Verb::Update | Verb::Patch if self.resource.is_custom() => {
                Err(ApiError::bad_request("name must be provided"))
            }
            Verb::Delete => self.delete().await,
            Verb::DeleteCollection
                if self
                    .resource
                    .verbs
                    .iter()
                    .any(|verb| verb == "deletecollection") =>
            {
                self.delete_collection().await
            }
            Verb::Update | Verb::Patch | Verb::DeleteCollection => {
                Err(ApiError::method_not_allowed())
            }
        }
    }

    /// Refuses a path with nothing between two slashes where a name or a namespace must be: an
    /// object would come to be in no namespace, where nobody looks for it.
    fn refuse_empty_segments(&self) -> Option<Result<Answer>> {
        if self.request.name.as_deref() == Some("") {
            return Some(Err(ApiError::bad_request("name must be provided")));
        }
        if !self.resource.namespaced || self.request.namespace.as_deref() != Some("") {
            return None;
        }
        if self.resource.is_custom() {
            return Some(Ok(Answer::no_such_path()));
        }
        // A new object is refused by its metadata, and a collection is that of all namespaces.
        let named = self.request.name.is_some();
        named.then(|| Err(ApiError::bad_request("Namespace parameter required.")))
    }

    async fn run_subresource(&self, name: &str) -> Result<Answer> {
        let Some(subresource) = self.resource.subresource(name) else {
            return Err(if self.resource.is_custom() {
                self.not_found()
            } else {
                ApiError::resource_not_found()
            });
        };
        let verb = self.request.verb.as_str();
        if !subresource.verbs.iter().any(|known| known == verb) {
            return Err(if self.resource.is_custom() {
                ApiError::not_supported(self.resource.subject(), verb)
            } else {
                ApiError::method_not_allowed()
            });
        }
        match (name, self.request.verb) {
            ("log", Verb::Get) => node::logs(self).await,
            ("exec" | "attach" | "portforward", Verb::Get | Verb::Create) => {
                node::connect(self, name).await
            }
            ("binding", Verb::Create) => self.bind().await,
            ("eviction", Verb::Create) => self.evict().await,
            ("token", Verb::Create) => account::create_token(self).await,
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
        let version = self.version_asked()?;
        let present = self.server.store().revision();
        if let Some(version) = version.filter(|version| *version > present) {
            return Err(list::too_large(version, present));
        }
        let found = self
            .server
            .store()
            .published()
            .get(&self.resource.table, &self.key())
            .ok_or_else(|| self.not_found())?;
        self.present(&found).await
    }

    /// The headers of the request.
    pub(crate) fn headers(&self) -> &HeaderMap {
        self.headers
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

    /// Who makes an object by another verb must be allowed to create it, too.
    pub(crate) fn authorize_create(&self) -> Result<()> {
        let asked = ResourceRequest {
            verb: Verb::Create,
            ..self.request.clone()
        };
        let action = Action::Resource(ResourceAction::of(&asked, None));
        self.server.authorize(self.who, &action)
    }

    /// The object the path names.
    pub(crate) fn find(&self) -> Result<Arc<Stored>> {
        self.server
            .store()
            .get(&self.resource.table, &self.key())
            .ok_or_else(|| self.not_found())
    }

    /// The object of a write to a path with a name has none.
    fn nameless(&self) -> ApiError {
        ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            self.name()
        ))
    }

    fn not_found(&self) -> ApiError {
        ApiError::not_found(self.resource.subject(), self.name())
    }

    /// The body as an object of some kind.
    pub(crate) fn decode_as(&self, kind: &str) -> Result<Document> {
        let resource = &self.resource;
        let mut expected = Expected {
            group: &resource.group,
            version: &resource.version,
            kind,
            has_message: true,
        };
        let subresource = self.request.subresource.as_deref();
        let body = subresource
            .and_then(|name| resource.subresource(name))
            .and_then(|sub| sub.body.as_ref());
        match body {
            _ if kind == resource.kind => expected.has_message = !resource.is_custom(),
            Some((group, version, named)) if kind == named => {
                (expected.group, expected.version) = (group, version);
            }
            // Options are the same in every group.
            _ => (expected.group, expected.version) = ("meta.k8s.io", "v1"),
        }
        decode_object(self.headers, &self.body, &expected)
    }

    /// Who is recorded as the writer: the name given, or the program's own.
    pub(crate) fn field_manager(&self) -> String {
        if let Some(manager) = self.query.get("fieldManager") {
            manager.to_owned()
        } else {
            let agent = self
                .headers
                .get(USER_AGENT)
                .map(|agent| String::from_utf8_lossy(agent.as_bytes()))
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

/// A whole number of the query, with Go's words when it is none.
pub(crate) fn parse_int(text: &str) -> Result<i64> {
    text.parse().map_err(|error: std::num::ParseIntError| {
        use std::num::IntErrorKind::{NegOverflow, PosOverflow};
        let why = match error.kind() {
            PosOverflow | NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
    })
}
