//! What `init`, `create api` and `create webhook` write.
//!
//! Each makes a [`Plan`](plan::Plan) from templates and from what is there, shows conflicts, and
//! writes all of it or nothing. The `PROJECT` file says what was created before.

mod api;
mod edit;
mod init;
mod plan;
mod render;
mod rustfmt;
#[cfg(test)]
mod tests;
mod version;
mod webhook;
mod writing;

pub(crate) use self::api::{NewApi, create_api};
pub(crate) use self::init::{NewProject, init};
pub(crate) use self::plan::{Plan, Written, describe, facts};
pub(crate) use self::webhook::{NewWebhook, create_webhook};
