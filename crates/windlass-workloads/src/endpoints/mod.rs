//! The endpoints controllers: which pods stand behind a Service.
//!
//! Kubernetes says it twice. [`slices`] writes EndpointSlices, which proxies read: at most a
//! hundred endpoints in each, one family of addresses, and the same ports for all ([`placing`]
//! says which endpoint goes where, so that little is rewritten when little changes). [`legacy`]
//! writes the one Endpoints object of the Service's name, which older programs read, and
//! [`leftover`] removes it when the Service is gone. Both look at pods in the same way
//! ([`candidate`]) and note which change they answer ([`trigger`]).
//!
//! A Service without a selector, or one that is but another name (ExternalName), is left alone:
//! somebody else says what stands behind it.

mod candidate;
mod hints;
mod leftover;
mod legacy;
mod placing;
mod slice;
mod slices;
mod subsets;
mod trigger;

use windlass::Operator;

/// Adds the controllers.
pub(crate) fn add_to(operator: Operator) -> Operator {
    operator
        .controller(slices::controller())
        .controller(legacy::controller())
        .controller(leftover::controller())
}
