//! How pods and Services are reached.
//!
//! With sandboxes, pods are on a private bridge of the machine ([`Bridge`]) and a Service's address
//! is turned into a ready endpoint's by one nftables table that is replaced as a whole ([`nft`]).
//! All traffic of a pod goes through the machine, also to its neighbours, so that answers find
//! their way back through the same translation.
//!
//! Without privileges, pods are processes on the machine's own loopback network, and a Service's
//! address is one that this program listens on ([`proxy`]).
//!
//! Both follow the same [`Picture`]: the Services and EndpointSlices as they are.

mod bridge;
pub mod nft;
mod picture;
pub mod proxy;
mod range;
mod route;
mod task;

pub use bridge::{Bridge, connect_inside};
pub use picture::Picture;
pub(crate) use picture::service_of;
pub use range::Range;
pub use route::{Endpoint, Protocol, Route, routes};
pub use task::{listening, translating};
