//! The figures side by side.

use std::fmt::Write as _;

use crate::rounds::{Column, Rounds};

/// The whole table, in Markdown.
pub(crate) fn of(rounds: &Rounds, bytes: usize, columns: &[Column]) -> String {
    let thousands = f64::from(rounds.widgets) / 1000.0;
    let mut text = format!(
        "{} widgets, {} single changes, {} Deployments of {bytes} bytes that are only held\n\n",
        rounds.widgets, rounds.singles, rounds.cached
    );
    let mut row = |name: &str, cell: &dyn Fn(&Column) -> String| {
        let cells: Vec<String> = columns.iter().map(cell).collect();
        let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
    };
    row("", &|column| column.name.clone());
    row("---", &|_| "---".to_owned());
    row("CPU per 1,000 converged, s", &|column| {
        format!("{:.2}", column.converge.cpu / thousands)
    });
    row("CPU per 1,000 changed, s", &|column| {
        format!("{:.2}", column.change.cpu / thousands)
    });
    row("time to converge / to change all, s", &|column| {
        format!("{:.1} / {:.1}", column.converge.wall, column.change.wall)
    });
    row("writes to converge", &|column| {
        column.converge.requests.to_string()
    });
    row("writes for a change of all", &|column| {
        column.change.requests.to_string()
    });
    row("one change to its effect, p50 / p99, ms", &|column| {
        let at = |part: f64| quantile(&column.latencies, part) * 1000.0;
        format!("{:.1} / {:.1}", at(0.5), at(0.99))
    });
    row("CPU per single change, ms", &|column| {
        format!(
            "{:.1}",
            column.single.cpu * 1000.0 / f64::from(rounds.singles)
        )
    });
    row("writes per single change", &|column| {
        format!(
            "{:.2}",
            column.single.requests.total() / f64::from(rounds.singles)
        )
    });
    row("restart: CPU, s", &|column| {
        format!("{:.2}", column.restart.cpu)
    });
    row("restart: writes", &|column| {
        column.restart.requests.to_string()
    });
    row("idle: CPU, ms/s", &|column| {
        format!("{:.2}", column.idle * 1000.0)
    });
    row("idle: writes", &|column| column.idle_requests.to_string());
    row("resident: empty / converged, MiB", &|column| {
        format!(
            "{:.1} / {:.1}",
            column.empty / 1024.0,
            column.converged / 1024.0
        )
    });
    row("resident per held Deployment, KiB", &|column| {
        column
            .cached
            .map_or_else(String::new, |kib| format!("{kib:.2}"))
    });
    text
}

fn quantile(sorted: &[f64], part: f64) -> f64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss
    )]
    let at = (sorted.len() as f64 * part) as usize;
    let at = at.min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(f64::NAN)
}
