//! The table that is printed: what each subject did, and how ours compares.

use std::time::Duration;

use comfy_table::{Table, presets};

use crate::load::Rate;
use crate::measure::Figures;
use crate::subject::as_f64;

/// All subjects' figures; what was not measured is `None`.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) ceiling: Option<Figures>,
    pub(crate) in_memory: Option<Figures>,
    pub(crate) durable: Option<Figures>,
    /// With the controllers of `windlass up --no-node`.
    pub(crate) up_in_memory: Option<Figures>,
    pub(crate) up_durable: Option<Figures>,
    pub(crate) kubernetes: Option<Figures>,
    pub(crate) kubernetes_unsafe: Option<Figures>,
    /// How long a server takes to start within a process: the first, and one after it.
    pub(crate) in_process: (Duration, Duration),
}

/// Whether more is better.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    More,
    Less,
}

struct Row {
    what: &'static str,
    value: fn(&Figures) -> f64,
    unit: &'static str,
    better: Better,
    /// What is wanted of the ratio, in memory and durable.
    goals: (&'static str, &'static str),
    /// The same with the controllers of `windlass up --no-node`.
    up_goals: (&'static str, &'static str),
    /// Whether the ceiling has such a figure.
    bounded: bool,
}

fn mib(bytes: usize) -> f64 {
    as_f64(bytes as u64) / (1024.0 * 1024.0)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn micros(rate: &Rate) -> f64 {
    rate.cpu.as_secs_f64() * 1e6
}

fn bytes_per_object(figures: &Figures) -> f64 {
    let more = figures.resident_full.saturating_sub(figures.resident_empty);
    as_f64(more as u64) / as_f64(crate::requests::OBJECTS as u64)
}

const ROWS: &[Row] = &[
    Row {
        what: "start to /readyz",
        value: |f| millis(f.ready_after),
        unit: "ms",
        better: Better::Less,
        goals: ("1/100", "1/100"),
        up_goals: ("", ""),
        bounded: false,
    },
    Row {
        what: "resident, empty",
        value: |f| mib(f.resident_empty),
        unit: "MiB",
        better: Better::Less,
        goals: ("1/10", "1/10"),
        up_goals: ("1/10", "1/10"),
        bounded: false,
    },
    Row {
        what: "resident, 10,000 ConfigMaps",
        value: |f| mib(f.resident_full),
        unit: "MiB",
        better: Better::Less,
        goals: ("1/10", "1/10"),
        up_goals: ("1/10", "1/10"),
        bounded: false,
    },
    Row {
        what: "resident bytes per object",
        value: bytes_per_object,
        unit: "B",
        better: Better::Less,
        goals: ("", ""),
        up_goals: ("", ""),
        bounded: false,
    },
    Row {
        what: "the same / its JSON",
        value: |f| bytes_per_object(f) / as_f64(f.object_bytes.max(1) as u64),
        unit: "",
        better: Better::Less,
        goals: ("at most 3", "at most 3"),
        up_goals: ("", ""),
        bounded: false,
    },
    Row {
        what: "creates",
        value: |f| f.creates.per_second,
        unit: "/s",
        better: Better::More,
        goals: ("10 or 90% of bare", "5"),
        up_goals: ("10", "6"),
        bounded: true,
    },
    Row {
        what: "creates, p99",
        value: |f| millis(f.creates.p99),
        unit: "ms",
        better: Better::Less,
        goals: ("", ""),
        up_goals: ("", ""),
        bounded: true,
    },
    Row {
        what: "creates, server CPU each",
        value: |f| micros(&f.creates),
        unit: "µs",
        better: Better::Less,
        goals: ("", ""),
        up_goals: ("", ""),
        bounded: true,
    },
    Row {
        what: "updates",
        value: |f| f.updates.per_second,
        unit: "/s",
        better: Better::More,
        goals: ("", ""),
        up_goals: ("", ""),
        bounded: true,
    },
    Row {
        what: "updates, server CPU each",
        value: |f| micros(&f.updates),
        unit: "µs",
        better: Better::Less,
        goals: ("", ""),
        up_goals: ("", ""),
        bounded: true,
    },
    Row {
        what: "GETs, certificate",
        value: |f| f.gets.per_second,
        unit: "/s",
        better: Better::More,
        goals: ("8 or 90% of bare", ""),
        up_goals: ("", ""),
        bounded: true,
    },
    Row {
        what: "GETs, p50",
        value: |f| millis(f.gets.p50),
        unit: "ms",
        better: Better::Less,
        goals: ("", ""),
        up_goals: ("", ""),
        bounded: true,
    },
    Row {
        what: "GETs, server CPU each",
        value: |f| micros(&f.gets),
        unit: "µs",
        better: Better::Less,
        goals: ("", ""),
        up_goals: ("", ""),
        bounded: true,
    },
    Row {
        what: "GETs, ServiceAccount token",
        value: |f| f.gets_by_token.per_second,
        unit: "/s",
        better: Better::More,
        goals: ("", ""),
        up_goals: ("", ""),
        bounded: false,
    },
    Row {
        what: "list of 10,000",
        value: |f| millis(f.list),
        unit: "ms",
        better: Better::Less,
        goals: ("1/5", "1/5"),
        up_goals: ("", ""),
        bounded: false,
    },
    Row {
        what: "creates, up to 100,000 ConfigMaps",
        value: |f| f.large_creates.per_second,
        unit: "/s",
        better: Better::More,
        goals: ("", ""),
        up_goals: ("10", "6"),
        bounded: false,
    },
    Row {
        what: "resident, 100,000 ConfigMaps",
        value: |f| mib(f.resident_large),
        unit: "MiB",
        better: Better::Less,
        goals: ("1/10", "1/10"),
        up_goals: ("1/10", "1/10"),
        bounded: false,
    },
    Row {
        what: "1,000 watchers, p50",
        value: |f| millis(f.fanout_p50),
        unit: "ms",
        better: Better::Less,
        goals: ("", ""),
        up_goals: ("", ""),
        bounded: false,
    },
    Row {
        what: "1,000 watchers, p99",
        value: |f| millis(f.fanout_p99),
        unit: "ms",
        better: Better::Less,
        goals: ("under 50 ms", "under 50 ms"),
        up_goals: ("", ""),
        bounded: false,
    },
];

fn number(value: f64, unit: &str) -> String {
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}").trim_end().to_owned()
}

/// Ours against theirs: how many times as much, or which part of it.
fn ratio(ours: Option<f64>, theirs: Option<f64>, better: Better) -> String {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if ours > 0.0 && theirs > 0.0 => match better {
            Better::More => format!("{:.1} ×", ours / theirs),
            Better::Less if ours <= theirs => format!("1/{:.1}", theirs / ours),
            Better::Less => format!("{:.2} ×", ours / theirs),
        },
        _ => "–".into(),
    }
}

/// What is wanted in memory, and durable.
fn goals(goals: (&str, &str)) -> String {
    match goals {
        (one, other) if one == other => one.to_owned(),
        (one, "") => one.to_owned(),
        (one, other) => format!("{one}; {other}"),
    }
}

impl Report {
    /// What the controllers of a cluster cost the API server.
    fn with_controllers(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header([
            "",
            "up --no-node --in-memory",
            "API server alone",
            "up --no-node",
            "API server alone, durable",
            "up in memory : etcd unsafe",
            "up : etcd",
            "goals",
        ]);
        for row in ROWS {
            let value = |figures: &Option<Figures>| figures.as_ref().map(row.value);
            let shown = |figures: &Option<Figures>| {
                value(figures).map_or("–".into(), |value| number(value, row.unit))
            };
            let against = |ours, theirs| ratio(value(ours), value(theirs), row.better);
            table.add_row([
                row.what.to_owned(),
                shown(&self.up_in_memory),
                shown(&self.in_memory),
                shown(&self.up_durable),
                shown(&self.durable),
                against(&self.up_in_memory, &self.kubernetes_unsafe),
                against(&self.up_durable, &self.kubernetes),
                goals(row.up_goals),
            ]);
        }
        table
    }

    pub(crate) fn print(&self) {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header([
            "",
            "bare hyper + rustls",
            "ours, in memory",
            "ours, durable",
            "kube-apiserver + etcd",
            "the same, etcd unsafe",
            "in memory : etcd unsafe",
            "durable : etcd",
            "goals",
            "of bare",
        ]);
        for row in ROWS {
            let value = |figures: &Option<Figures>| figures.as_ref().map(row.value);
            let shown = |figures: &Option<Figures>| {
                value(figures).map_or("–".into(), |value| number(value, row.unit))
            };
            let bare = value(&self.ceiling).filter(|_| row.bounded);
            let of_bare = match (value(&self.in_memory), bare, row.better) {
                (Some(ours), Some(bare), Better::More) => format!("{:.0} %", 100.0 * ours / bare),
                (Some(ours), Some(bare), Better::Less) if row.unit == "µs" => {
                    format!("+{:.1} µs", ours - bare)
                }
                _ => String::new(),
            };
            table.add_row([
                row.what.to_owned(),
                bare.map_or(String::new(), |value| number(value, row.unit)),
                shown(&self.in_memory),
                shown(&self.durable),
                shown(&self.kubernetes),
                shown(&self.kubernetes_unsafe),
                ratio(
                    value(&self.in_memory),
                    value(&self.kubernetes_unsafe),
                    row.better,
                ),
                ratio(value(&self.durable), value(&self.kubernetes), row.better),
                goals(row.goals),
                of_bare,
            ]);
        }
        println!("{table}\n");
        println!("{}\n", self.with_controllers());
        let (first, next) = self.in_process;
        println!(
            "in process: the first server of a process is ready after {:.2} ms, the next after {:.2} ms (goal: 5 ms)",
            millis(first),
            millis(next)
        );
        if let Some(figures) = &self.in_memory {
            println!("one ConfigMap is {} B of JSON", figures.object_bytes);
        }
    }
}
