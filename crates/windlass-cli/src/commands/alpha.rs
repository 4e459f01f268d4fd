//! `windlass alpha`: spellings of kubebuilder 1.

use clap::{Args, Subcommand, ValueEnum};

use super::create;
use crate::error::{Error, Result};
use crate::output::Output;
use crate::scaffold::NewWebhook;

/// Older spellings of commands, as kubebuilder 1 had them
#[derive(Subcommand)]
pub(crate) enum Alpha {
    Webhook(Webhook),
}

/// Add a webhook (the same as `create webhook`)
#[derive(Args)]
#[command(after_help = "Example:
  windlass alpha webhook --group core --version v1 --kind Pod --type=mutating --operations=create")]
pub(crate) struct Webhook {
    /// The group, without the project's domain; `core` for Pods and their like
    #[arg(long)]
    group: String,
    /// The version
    #[arg(long)]
    version: String,
    /// The kind
    #[arg(long)]
    kind: String,
    /// Fill in (mutating) or check (validating)
    #[arg(long = "type", value_enum)]
    sort: Sort,
    /// When it is called
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "create,update"
    )]
    operations: Vec<Operation>,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    Mutating,
    Validating,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Operation {
    Create,
    Update,
}

impl Alpha {
    pub(crate) fn run(self) -> Result<()> {
        let Self::Webhook(webhook) = self;
        let mut operations = webhook.operations;
        operations.sort_unstable();
        operations.dedup();
        if operations.is_empty() {
            return Err(Error::Other(
                "--operations names none; give create, update or both".to_owned(),
            ));
        }
        let names = operations.iter().map(|operation| match operation {
            Operation::Create => "Create".to_owned(),
            Operation::Update => "Update".to_owned(),
        });
        let new = NewWebhook {
            group: webhook.group,
            version: webhook.version,
            kind: webhook.kind,
            defaulting: webhook.sort == Sort::Mutating,
            validation: webhook.sort == Sort::Validating,
            conversion: false,
            operations: Some(names.collect()),
        };
        create::webhook(&new, webhook.output)
    }
}
