//! The operator of the guides: a Page is a text on a web server, a Feed is a list of pages.
//!
//! `docs/tutorial.md` builds it step by step; every piece of code there is a piece of this crate.

mod feed;
mod page;
mod review;
pub mod v1alpha1;

use windlass::{Controller, Operator, Webhook, webhook::Versions};

pub use self::{
    feed::{Feed, FeedSpec, FeedStatus},
    page::{Page, PageSpec, PageStatus},
};

/// The operator.
pub fn operator() -> Operator {
    Operator::new("pages-operator")
        .version(env!("CARGO_PKG_VERSION"))
        .controller(
            Controller::of::<Page>()
                .dependent(page::content)
                .dependent(page::server)
                .dependent(page::service)
                .status(page::status),
        )
        .controller(Controller::of::<Feed>().reconciler(feed::Publisher::declare))
        .webhook(
            Webhook::of::<Page>()
                .defaulting(review::default)
                .validating(review::validate),
        )
        .versions(Versions::hub::<Page>().spoke::<v1alpha1::Page>())
}
