//! What an exploration found, for a person.

use std::fmt::Write as _;

use crate::explore::{Finding, Report};

/// The report, as it is printed at the end.
pub fn text(report: &Report, replay: impl Fn(&Finding) -> String) -> String {
    let mut text = head(report);
    for finding in &report.findings {
        text.push('\n');
        text.push_str(&finding_text(finding, &replay(finding)));
    }
    for race in &report.races {
        let _ = writeln!(text, "\nRACE   {race}");
        let _ = writeln!(
            text,
            "       seen without a fault; it was {} revisions behind",
            race.behind
        );
    }
    text
}

/// What was done, in figures.
pub fn head(report: &Report) -> String {
    let mut text = String::new();
    let took = report.took.as_secs_f64();
    let _ = writeln!(
        text,
        "reference   {} writes ({} without effect), {} events, {took:.1} s; {} runs, fields not compared: {}",
        report.writes, report.without_effect, report.events, report.references, report.masked
    );
    let minutes = report.ran_for.as_secs_f64() / 60.0;
    #[allow(clippy::cast_precision_loss, reason = "it is a small number")]
    let rate = report.runs as f64 / minutes.max(1e-9);
    let _ = writeln!(
        text,
        "plans       {} of one fault; {} run in {:.0} s ({rate:.0} a minute), {} left out, {} did not reach their fault",
        report.made,
        report.runs,
        report.ran_for.as_secs_f64(),
        report.left_out,
        report.not_reached
    );
    if report.changes > 0 {
        let _ = writeln!(
            text,
            "fields      {} changes of the sample; {} tried, {} of them refused by the API server",
            report.changes, report.changes_tried, report.changes_refused
        );
    }
    if report.unsteady > 0 {
        let _ = writeln!(
            text,
            "unsteady    {} plans ended badly once, but not again or also without their fault",
            report.unsteady
        );
    }
    let _ = writeln!(
        text,
        "found       {} ({} plans end badly), {} races",
        report.findings.len(),
        report.failed,
        report.races.len()
    );
    text
}

/// One finding.
pub fn finding_text(finding: &Finding, replay: &str) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "FOUND  {}", finding.wrong.title().text());
    for line in finding.wrong.details() {
        let _ = writeln!(text, "       {line}");
    }
    for fault in &finding.plan.0 {
        let (what, nth) = (&fault.at.what, fault.at.nth);
        let nth = if nth > 1 {
            format!(" (time {nth})")
        } else {
            String::new()
        };
        let _ = writeln!(text, "  fault   {} {what}{nth}", fault.act.title());
        let _ = writeln!(text, "  legal   {}", fault.act.why_legal());
    }
    if let Ok(Some(change)) = finding.kept.change() {
        let _ = writeln!(text, "  change  {}, and back", change.title());
    }
    let steps: Vec<String> = finding.kept.steps.iter().map(ToString::to_string).collect();
    let _ = writeln!(text, "  steps   {}", steps.join(", "));
    if finding.others > 0 {
        let _ = writeln!(
            text,
            "  also    {} other plans end like this",
            finding.others
        );
    }
    let _ = writeln!(text, "  usually {}", finding.wrong.title().advice());
    let _ = writeln!(text, "  replay  {replay}");
    text
}
