//! [`Declarative`]: a renderer as a controller of the framework.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::DynamicObject;
use windlass::{
    Controller, Declare,
    handle::{Access, Verb},
    kind::KindInfo,
    watch::{Predicate, Scope},
};

use crate::{
    Inventory, Renderer,
    engine::{Engine, WithFinalizer, WithoutFinalizer},
};

type Bind<T> = Arc<dyn Fn(&mut Declare<DynamicObject>) -> Arc<T> + Send + Sync>;

/// Which objects are reconciled.
type Matching = Arc<dyn Fn(&DynamicObject) -> bool + Send + Sync>;

/// A [`Renderer`] with what the engine has to know to carry out what it answers; becomes a
/// [`Controller`].
///
/// ```
/// use std::sync::Arc;
///
/// use futures::future::BoxFuture;
/// use serde_json::json;
/// use windlass::{Operator, Result, kind::KindInfo};
/// use windlass_declarative::{Declarative, Desired, Input, Renderer, RendererContext, Wanted};
///
/// /// Copies the parent's spec into a ConfigMap.
/// struct Copy;
///
/// impl Renderer for Copy {
///     fn render<'a>(&'a self, _: &'a RendererContext, input: &'a Input) -> BoxFuture<'a, Result<Desired>> {
///         Box::pin(async move {
///             Ok(Desired::of([Wanted::new(json!({
///                 "apiVersion": "v1",
///                 "kind": "ConfigMap",
///                 "metadata": {"name": input.parent["metadata"]["name"]},
///                 "data": {"spec": input.parent["spec"].to_string()},
///             }))]))
///         })
///     }
/// }
///
/// fn kind(group: &str, kind: &str, plural: &str) -> KindInfo {
///     KindInfo {
///         group: group.into(),
///         version: "v1".into(),
///         kind: kind.into(),
///         plural: plural.into(),
///         namespaced: true,
///     }
/// }
///
/// let controller = Declarative::of(kind("example.com", "Thing", "things"), |_| Arc::new(Copy))
///     .child(kind("", "ConfigMap", "configmaps"))
///     .controller();
/// let operator = Operator::new("copies").controller(controller);
/// operator.check()?;
/// # Ok::<(), windlass::Error>(())
/// ```
pub struct Declarative {
    parent: KindInfo,
    name: Option<String>,
    renderer: Bind<dyn Renderer>,
    inventory: Option<Bind<dyn Inventory>>,
    children: Vec<KindInfo>,
    access: Vec<Access>,
    has_finalizer: bool,
    finalizer: Option<String>,
    crd: Option<CustomResourceDefinition>,
    scope: Scope,
    only: Option<Predicate<DynamicObject>>,
    matching: Option<Matching>,
    resync: Option<Duration>,
    concurrency: Option<usize>,
    timeout: Option<Duration>,
}

impl Declarative {
    /// For parents of this kind. The renderer is made from what it declares to read.
    pub fn of<R: Renderer>(
        parent: KindInfo,
        renderer: impl Fn(&mut Declare<DynamicObject>) -> Arc<R> + Send + Sync + 'static,
    ) -> Self {
        Self {
            parent,
            name: None,
            renderer: Arc::new(move |declare| renderer(declare)),
            inventory: None,
            children: Vec::new(),
            access: Vec::new(),
            has_finalizer: false,
            finalizer: None,
            crd: None,
            scope: Scope::all(),
            only: None,
            matching: None,
            resync: None,
            concurrency: None,
            timeout: None,
        }
    }

    /// The controller's name; by default the kind in lower case.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A kind of children: watched from the start, and given to the renderer.
    #[must_use]
    pub fn child(mut self, kind: KindInfo) -> Self {
        if !self.children.contains(&kind) {
            self.children.push(kind);
        }
        self
    }

    /// Kinds that are found by rendering, as far as this access goes. Without it, an object of a
    /// kind that was not declared is refused.
    #[must_use]
    pub fn any_kind(mut self, access: impl IntoIterator<Item = Access>) -> Self {
        self.access.extend(access);
        self
    }

    /// What is made is recorded here, and deleted by what is recorded. Parents have a finalizer
    /// then.
    #[must_use]
    pub fn inventory<I: Inventory>(
        mut self,
        inventory: impl Fn(&mut Declare<DynamicObject>) -> Arc<I> + Send + Sync + 'static,
    ) -> Self {
        self.inventory = Some(Arc::new(move |declare| inventory(declare)));
        self.has_finalizer = true;
        self
    }

    /// Parents have a finalizer, because the renderer has a say when they are deleted.
    #[must_use]
    pub fn finalizes(mut self) -> Self {
        self.has_finalizer = true;
        self
    }

    /// The finalizer's name, if it is not the operator's own. Parents that have it although nothing
    /// is to be undone lose it.
    #[must_use]
    pub fn finalizer(mut self, name: impl Into<String>) -> Self {
        self.finalizer = Some(name.into());
        self
    }

    /// The definition of the parent's kind, if the operator brings it.
    #[must_use]
    pub fn defined_by(mut self, crd: CustomResourceDefinition) -> Self {
        self.crd = Some(crd);
        self
    }

    /// Only parents in this scope.
    #[must_use]
    pub fn scoped(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Only changes of a parent that pass wake it.
    #[must_use]
    pub fn only(mut self, predicate: Predicate<DynamicObject>) -> Self {
        self.only = Some(predicate);
        self
    }

    /// Only parents for which this holds. One that has the finalizer and does not match any more is
    /// treated as if it were being deleted.
    #[must_use]
    pub fn matching(
        mut self,
        matching: impl Fn(&DynamicObject) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.matching = Some(Arc::new(matching));
        self
    }

    /// Renders for every parent again after this time, also if nothing changed.
    #[must_use]
    pub fn resync(mut self, every: Duration) -> Self {
        self.resync = Some(every);
        self
    }

    /// How many parents are reconciled at once.
    #[must_use]
    pub fn concurrency(mut self, limit: usize) -> Self {
        self.concurrency = Some(limit);
        self
    }

    /// How long one reconcile may take.
    #[must_use]
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// The controller.
    pub fn controller(self) -> Controller<DynamicObject> {
        let Self {
            parent,
            name,
            renderer,
            inventory,
            children,
            access,
            has_finalizer,
            finalizer,
            crd,
            scope,
            only,
            matching,
            resync,
            concurrency,
            timeout,
        } = self;
        let is_defined = crd.is_some();
        let mut controller = Controller::of_kind(parent.clone()).scoped(scope);
        if let Some(name) = name {
            controller = controller.named(name);
        }
        if let Some(finalizer) = finalizer {
            controller = controller.finalizer(finalizer);
        }
        if let Some(crd) = crd {
            controller = controller.defined_by(crd);
        }
        if let Some(only) = only {
            controller = controller.only(only);
        }
        if let Some(matching) = matching {
            controller = controller.matching(move |parent| matching(parent));
        }
        if let Some(every) = resync {
            controller = controller.resync(every);
        }
        if let Some(limit) = concurrency {
            controller = controller.concurrency(limit);
        }
        if let Some(limit) = timeout {
            controller = controller.timeout(limit);
        }
        let closed = access.is_empty();

        let engine = move |declare: &mut Declare<DynamicObject>| {
            declare.writes_status();
            Engine {
                kind: parent.clone(),
                children: children.clone(),
                closed,
                owned: declare.owns_kinds(children.iter().cloned(), access.iter().cloned()),
                parents: declare.writes_kind(&parent, Access::to([Verb::Patch])),
                renderer: renderer(declare),
                inventory: inventory.as_ref().map(|inventory| inventory(declare)),
                is_defined,
                given: Mutex::default(),
            }
        };
        if has_finalizer {
            controller.reconciler(move |declare| WithFinalizer(engine(declare)))
        } else {
            controller.reconciler(move |declare| WithoutFinalizer(engine(declare)))
        }
    }
}
