//! A request for a resource: the data that every stage reads. What is done with it is in the modules
//! of the verbs and of the pipeline; here is only what the request itself says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::HeaderMap;
use http::header::USER_AGENT;

use super::options::Options;
use crate::auth::{Action, Identity, ResourceAction};
use crate::decode::FieldValidation;
use crate::http::warnings::Warnings;
use crate::http::{Query, ResourceRequest, Verb, Wanted, media_type};
use crate::kinds::Admission;
use crate::node::Upgrade;
use crate::patch::PatchKind;
use crate::registry::resource::Resource;
use crate::server::ApiServer;
use crate::status::{ApiError, Result};
use crate::store::{Key, Stored};

/// One request for a resource, with everything needed to answer it.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a ApiServer,
    pub(crate) who: &'a Identity,
    pub(crate) request: &'a ResourceRequest,
    pub(crate) resource: Arc<Resource>,
    pub(crate) query: Query,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: Bytes,
    pub(crate) wanted: Wanted,
    /// The connection, when it is to become something else.
    pub(crate) upgrade: Upgrade,
    pub(super) dry_run: bool,
    pub(super) field_validation: FieldValidation,
    /// What is wrong with its options, told once it is known that the request has somewhere to go.
    pub(super) refused: Option<ApiError>,
    /// What the client is told besides, whatever comes of the request.
    pub(super) warnings: Warnings,
    /// Whether it names the uid or the version of the object that it means.
    pub(super) guarded: AtomicBool,
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

    pub(super) fn key(&self) -> Key {
        Key::new(self.namespace(), self.name())
    }

    /// A PUT that names a version means that version; every other write is remade from what is there.
    pub(super) fn is_put(&self) -> bool {
        self.request.verb == crate::http::Verb::Update
    }

    /// Whether it is a server-side apply.
    pub(super) fn is_apply(&self) -> bool {
        self.request.verb == Verb::Patch && PatchKind::is_apply(media_type(self.headers))
    }

    /// The object the path names.
    pub(crate) fn find(&self) -> Result<Arc<Stored>> {
        self.server
            .store()
            .get(&self.resource.table, &self.key())
            .ok_or_else(|| self.not_found())
    }

    pub(super) fn not_found(&self) -> ApiError {
        ApiError::not_found(self.resource.subject(), self.name())
    }

    /// The object of a write to a path with a name has none.
    pub(super) fn nameless(&self) -> ApiError {
        ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            self.name()
        ))
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

    /// What is admitted where.
    pub(super) fn admission(&self) -> Admission<'_> {
        Admission {
            server: self.server,
            resource: &self.resource,
            namespace: self.namespace(),
        }
    }
}
