//! What the operators took, side by side: medians of all rounds, and how much of each peer's the
//! first operator took.

use std::fmt::Write as _;

use crate::{
    process::Subject,
    rounds::{Play, Rounds},
};

/// One operator, in all rounds.
pub(crate) struct Column {
    name: String,
    pub(crate) plays: Vec<Play>,
}

impl Column {
    pub(crate) fn new(subject: &Subject) -> Self {
        Self {
            name: subject.name.clone(),
            plays: Vec::new(),
        }
    }

    /// The median of a figure.
    fn median(&self, of: &dyn Fn(&Play) -> f64) -> f64 {
        let mut figures: Vec<f64> = self.plays.iter().map(of).collect();
        median(&mut figures)
    }

    /// How much a figure is of a peer's: of medians, and the least and the most of a round.
    fn ratio(&self, peer: &Self, of: &dyn Fn(&Play) -> f64) -> String {
        let all = self.median(of) / peer.median(of);
        let rounds = self.plays.iter().zip(&peer.plays);
        let mut rounds: Vec<f64> = rounds.map(|(ours, peer)| of(ours) / of(peer)).collect();
        rounds.sort_by(f64::total_cmp);
        match (rounds.first(), rounds.last()) {
            (Some(least), Some(most)) => format!("{all:.2} ({least:.2} to {most:.2})"),
            _ => String::new(),
        }
    }

    /// The writes of the round that had the most.
    fn most(&self, of: impl Fn(&Play) -> &crate::count::Requests) -> String {
        let all = self.plays.iter().map(of);
        let most = all.max_by(|one, other| one.total().total_cmp(&other.total()));
        most.map(ToString::to_string).unwrap_or_default()
    }
}

type Figure<'a> = Box<dyn Fn(&Play) -> f64 + 'a>;

/// Both tables, in Markdown.
pub(crate) fn of(rounds: &Rounds, bytes: usize, columns: &[Column]) -> String {
    let thousands = f64::from(rounds.widgets) / 1000.0;
    let singles = f64::from(rounds.singles);
    let mut text = format!(
        "{} widgets, {} single changes, {} Deployments of {bytes} bytes that are only held; \
         medians of {} rounds\n\n",
        rounds.widgets, rounds.singles, rounds.cached, rounds.times
    );
    let figures: Vec<(&str, usize, Figure<'_>)> = vec![
        (
            "CPU per 1,000 converged, s",
            3,
            Box::new(move |play| play.converge.cpu / thousands),
        ),
        (
            "CPU per 1,000 changed, s",
            3,
            Box::new(move |play| play.change.cpu / thousands),
        ),
        (
            "time to converge, s",
            1,
            Box::new(|play| play.converge.wall),
        ),
        (
            "time to change all, s",
            1,
            Box::new(|play| play.change.wall),
        ),
        (
            "one change to its effect, p50, ms",
            1,
            Box::new(|play| quantile(&play.latencies, 0.5) * 1000.0),
        ),
        (
            "one change to its effect, p99, ms",
            1,
            Box::new(|play| quantile(&play.latencies, 0.99) * 1000.0),
        ),
        (
            "CPU per single change, ms",
            2,
            Box::new(move |play| play.single.cpu * 1000.0 / singles),
        ),
        ("restart: CPU, s", 2, Box::new(|play| play.restart.cpu)),
        (
            "resident when empty, MiB",
            1,
            Box::new(|play| play.empty.all / 1024.0),
        ),
        (
            "resident with all converged, MiB",
            1,
            Box::new(|play| play.converged.all / 1024.0),
        ),
        (
            "memory per held Deployment, KiB",
            2,
            Box::new(|play| play.cached),
        ),
    ];
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    heading(&mut text, "", &names);
    for (name, digits, figure) in &figures {
        let cell = |column: &Column| format!("{:.*}", digits, column.median(figure));
        row(&mut text, name, columns.iter().map(cell));
    }
    let idle = |column: &Column| format!("{:.2}", column.median(&|play| play.idle * 1000.0));
    row(&mut text, "idle: CPU, ms/s", columns.iter().map(idle));
    let mut writes = |name: &str, cell: &dyn Fn(&Column) -> String| {
        row(&mut text, name, columns.iter().map(cell));
    };
    writes("writes to converge", &|column| {
        column.most(|play| &play.converge.requests)
    });
    writes("writes for a change of all", &|column| {
        column.most(|play| &play.change.requests)
    });
    writes("writes per single change", &|column| {
        let each = column.median(&|play| play.single.requests.total() / singles);
        format!("{each:.2}")
    });
    writes("idle: writes", &|column| {
        column.most(|play| &play.idle_requests)
    });
    writes("restart: writes", &|column| {
        column.most(|play| &play.restart.requests)
    });
    let Some((first, peers)) = columns.split_first().filter(|(_, peers)| !peers.is_empty()) else {
        return text;
    };
    let _ = writeln!(
        text,
        "\n{} as a part of each peer: of medians (the least and the most of a round)\n",
        first.name
    );
    heading(&mut text, "", &names[1..]);
    for (name, _, figure) in &figures {
        let name = name.rsplit_once(", ").map_or(*name, |(name, _)| name);
        let cells = peers.iter().map(|peer| first.ratio(peer, figure));
        row(&mut text, name, cells);
    }
    text
}

/// The figures that matter most, of one round.
pub(crate) fn line(play: &Play) -> String {
    format!(
        "CPU {:.2} and {:.2} s, {:.1} and {:.1} s to converge and to change all, {:.1} ms for one",
        play.converge.cpu,
        play.change.cpu,
        play.converge.wall,
        play.change.wall,
        quantile(&play.latencies, 0.5) * 1000.0
    )
}

fn heading(text: &mut String, corner: &str, names: &[&str]) {
    row(text, corner, names.iter().map(ToString::to_string));
    row(text, "---", names.iter().map(|_| "---".to_owned()));
}

fn row(text: &mut String, name: &str, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.collect();
    let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match (figures.get(middle), figures.len() % 2) {
        (Some(upper), 0) => f64::midpoint(figures[middle - 1], *upper),
        (Some(middle), _) => *middle,
        (None, _) => f64::NAN,
    }
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
