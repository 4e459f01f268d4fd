//! The operator's own certificate: a CA that only this operator has, and what it signs.
//!
//! Both are kept in one Secret, which every replica watches. What is due next is decided by
//! [`plan`] alone, from what is kept, the time, and what the API server already trusts:
//!
//! 1. nothing is kept, or what is kept cannot be used: a CA and a certificate are **issued**;
//! 2. two thirds of the certificate's time are over: it is **renewed** by the same CA;
//! 3. two thirds of the CA's time are over: the next CA is **introduced**. It signs nothing yet; it
//!    is only published beside the present one, in every `caBundle`;
//! 4. every `caBundle` has had the next CA for a while: it is **promoted**, and signs the
//!    certificate from now on. The one before stays published until it is over.
//!
//! So at every moment whatever certificate a replica still shows is vouched for by what the API
//! server trusts, and no request fails. Two replicas that decide at once write at the same
//! version of the Secret: one is refused, and follows the other.

mod issue;
mod plan;

pub(crate) use self::{
    issue::{Kept, Keyed, Lives, Terms, certified},
    plan::{Due, plan},
};
