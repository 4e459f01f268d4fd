//! [`Controllers`]: controllers that are started and stopped at run time.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tracing::info;

use crate::{
    Context, Error, Result, controller::AnyController, declare::wiring::Wires, kind::Object,
    operator::LateController,
};

/// Controllers that come and go while the operator runs: one for each object of a kind that
/// configures it, say.
///
/// Declared by [`Declare::controllers`](crate::Declare::controllers). They share the caches, the
/// client, the metrics and the end of the operator. One that is stopped finishes the reconciles
/// under way; its watches end with it if no other controller uses them.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::core::DynamicObject;
/// use windlass::{
///     FinalizingReconciler, handle::{Access, Controllers, Verb}, kind::KindInfo, prelude::*,
/// };
///
/// # struct Labels;
/// # impl Reconciler for Labels {
/// #     type Object = DynamicObject;
/// #     async fn reconcile(&self, _: &DynamicObject, _: &Context<DynamicObject>) -> Result<Action> { Ok(Action::done()) }
/// # }
/// /// Each ConfigMap names a kind to watch.
/// struct Configured { controllers: Controllers }
///
/// impl Configured {
///     fn declare(declare: &mut Declare<ConfigMap>) -> Self {
///         let access = Access::resource("example.com", "*", [Verb::List, Verb::Watch]);
///         Self { controllers: declare.controllers([access]) }
///     }
/// }
///
/// impl FinalizingReconciler for Configured {
///     type Object = ConfigMap;
///
///     async fn reconcile(&self, map: &ConfigMap, ctx: &Context<ConfigMap>) -> Result<Action> {
///         let plural = map.data.iter().flatten().next().map(|(_, plural)| plural.clone());
///         let plural = plural.unwrap_or_default();
///         let kind = KindInfo { group: "example.com".into(), version: "v1".into(), kind: plural.clone(), plural, namespaced: true };
///         // Of another version than the one that runs: that one is stopped first.
///         let version = kind.to_string();
///         self.controllers
///             .run(ctx, &ctx.key().to_string(), &version, || Controller::of_kind(kind).reconciler(|_| Labels).into())
///             .await?;
///         Ok(Action::done())
///     }
///
///     async fn cleanup(&self, _: &ConfigMap, ctx: &Context<ConfigMap>) -> Result<Action> {
///         self.controllers.stop(&ctx.key().to_string()).await;
///         Ok(Action::done())
///     }
/// }
/// # Operator::new("configured").controller(Controller::of_existing().reconciler(Configured::declare));
/// ```
#[derive(Clone, Default)]
pub struct Controllers(Arc<Mutex<BTreeMap<String, Running>>>);

struct Running {
    version: String,
    controller: LateController,
}

impl Controllers {
    /// Runs a controller under a name until it is stopped. One of the same version that runs
    /// already goes on; one of another version is stopped first, and its reconciles under way
    /// have ended when the new one begins.
    pub async fn run<K: Object>(
        &self,
        ctx: &Context<K>,
        name: &str,
        version: &str,
        controller: impl FnOnce() -> AnyController + Send,
    ) -> Result<()> {
        if self
            .lock()
            .get(name)
            .is_some_and(|it| it.version == version)
        {
            return Ok(());
        }
        let controller = controller();
        let flaws: Vec<&str> = controller.flaws().collect();
        if !flaws.is_empty() {
            return Err(Error::terminal(flaws.join("\n")));
        }
        self.stop(name).await;
        info!(controller = name, "starting a controller");
        let controller = LateController::start(&ctx.session.shared, &controller);
        let version = version.to_owned();
        let running = Running {
            version,
            controller,
        };
        self.lock().insert(name.to_owned(), running);
        Ok(())
    }

    /// Stops a controller, and waits until its reconciles under way have ended. Done already if
    /// none of that name runs.
    pub async fn stop(&self, name: &str) {
        let running = self.lock().remove(name);
        if let Some(running) = running {
            info!(controller = name, "stopping a controller");
            running.controller.stop().await;
        }
    }

    /// The names of the controllers that run.
    pub fn running(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    pub(crate) fn connect(&self, wires: &Wires) {
        let started = Arc::downgrade(&self.0);
        wires.undo.add(move || {
            if let Some(started) = started.upgrade() {
                let mut started = started.lock().unwrap_or_else(PoisonError::into_inner);
                for (_, running) in std::mem::take(&mut *started) {
                    running.controller.cancel();
                }
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
