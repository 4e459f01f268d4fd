//! The operators, each beside its correct twin: `FIXED` says which. What they have in common is one
//! kind, Web, of which they make objects.

mod answers;
mod crash;
mod fields;
mod stale;
mod unobserved;

use futures::future::BoxFuture;

pub(crate) use answers::*;
pub(crate) use crash::*;
pub(crate) use fields::*;
pub(crate) use stale::*;
pub(crate) use unobserved::*;

type Done = BoxFuture<'static, kube::Result<()>>;
