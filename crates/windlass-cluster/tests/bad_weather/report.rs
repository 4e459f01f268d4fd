//! What was seen from outside, and what is wrong with it.

use std::time::Duration;

/// How soon a stall must show in `/readyz`.
const NOTICED: Duration = Duration::from_mins(1);
/// How many events may wait: a thousand while one is sent, and again while one is sent again.
const EVENTS: f64 = 2001.0;
/// A process is let grow for so long after it was started.
const YOUNG: Duration = Duration::from_secs(30);
/// What a process may grow by in the last half: memory in KiB, beside a quarter of what it had, and
/// files.
const GROWTH: u64 = 8 << 10;
const FILES: u64 = 64;

/// One look at the operator's process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) at: Duration,
    pub(crate) process: u32,
    /// Resident memory, in KiB.
    pub(crate) memory: u64,
    /// Open file descriptors.
    pub(crate) files: u64,
    pub(crate) ready: bool,
    /// Events that wait, if its metrics could be read.
    pub(crate) events: Option<f64>,
}

/// Everything that was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) samples: Vec<Sample>,
    /// How soon each silence showed in `/readyz`; none if it did not.
    pub(crate) silences: Vec<Option<Duration>>,
    /// How often the metrics said that a watch failed.
    pub(crate) failures: f64,
    /// DELETE requests, of which this operator sends none.
    pub(crate) deletes: Vec<String>,
    /// Objects that were reported as gone, and were not.
    pub(crate) wrong: Vec<String>,
    /// Writes that arrived after the lease had run out.
    pub(crate) late: Vec<String>,
    /// What was not as it should be in the end.
    pub(crate) differences: Vec<String>,
}

impl Report {
    /// What is wrong; nothing if all is well.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut complain = |what: &str, which: &[String]| {
            if !which.is_empty() {
                wrong.push(format!("{what}: {}", which.join(", ")));
            }
        };
        complain("deleted", &self.deletes);
        complain("reported as gone", &self.wrong);
        complain("written after the lease", &self.late);
        complain("different in the end", &self.differences);
        let noticed = |one: &Option<Duration>| one.is_some_and(|after| after <= NOTICED);
        if self.silences.is_empty() || !self.silences.iter().all(noticed) {
            wrong.push(format!("not every stall was noticed: {:?}", self.silences));
        }
        if self.failures <= 0.0 {
            wrong.push("no failure shows in the metrics".to_owned());
        }
        if !self.samples.last().is_some_and(|last| last.ready) {
            wrong.push("not ready in the end".to_owned());
        }
        let most = self.samples.iter().filter_map(|sample| sample.events);
        let most = most.fold(f64::NAN, f64::max);
        if !(0.0..=EVENTS).contains(&most) {
            wrong.push(format!("{most} events waited"));
        }
        wrong.extend(self.growth());
        wrong
    }

    /// The samples of the last process in the last half, but for its youth.
    fn last_half(&self) -> Vec<Sample> {
        let Some(last) = self.samples.last() else {
            return Vec::new();
        };
        let of_last = |sample: &&Sample| sample.process == last.process;
        let mut samples = self.samples.iter().filter(of_last).copied().peekable();
        let begun = samples.peek().map_or(last.at, |first| first.at + YOUNG);
        let half = begun.max(last.at / 2);
        samples.filter(|sample| sample.at >= half).collect()
    }

    fn growth(&self) -> Vec<String> {
        let samples = self.last_half();
        let Some(first) = samples.first() else {
            return vec!["the last process is too young to say whether it grows".to_owned()];
        };
        let mut wrong = Vec::new();
        let most = |of: fn(&Sample) -> u64| samples.iter().map(of).max().unwrap_or_default();
        let memory = most(|sample| sample.memory);
        if memory > first.memory * 5 / 4 + GROWTH {
            wrong.push(format!("memory grew from {} to {memory} KiB", first.memory));
        }
        let files = most(|sample| sample.files);
        if files > first.files + FILES {
            wrong.push(format!("open files grew from {} to {files}", first.files));
        }
        wrong
    }

    /// Start, most and end of what is measured.
    pub(crate) fn print(&self) {
        let three = |what: &str, of: fn(&Sample) -> u64| {
            let all: Vec<u64> = self.samples.iter().map(of).collect();
            let (first, last) = (all.first().unwrap_or(&0), all.last().unwrap_or(&0));
            let most = all.iter().max().unwrap_or(&0);
            println!("{what}: start {first}, max {most}, end {last}");
        };
        three("memory (KiB)", |sample| sample.memory);
        three("open files", |sample| sample.files);
        let mut processes: Vec<u32> = self.samples.iter().map(|one| one.process).collect();
        processes.dedup();
        let half = self.last_half();
        let events = self.samples.iter().filter_map(|sample| sample.events);
        println!(
            "{} processes, the last judged from {:?} to {:?}",
            processes.len(),
            half.first().map(|one| one.at),
            half.last().map(|one| one.at),
        );
        println!("at most {} events waited", events.fold(0.0, f64::max));
        println!("{} watches failed", self.failures);
        println!("silences noticed after {:?}", self.silences);
    }
}

/// The check can fail: each thing that can be wrong is complained about, and nothing else.
pub(crate) fn every_fault_is_complained_about() {
    let sample = |second: u64| Sample {
        at: Duration::from_secs(second),
        process: 1,
        memory: 20_000,
        files: 20,
        ready: true,
        events: Some(3.0),
    };
    let good = Report {
        samples: (0..600).map(sample).collect(),
        silences: vec![Some(Duration::from_secs(50))],
        failures: 3.0,
        ..Report::default()
    };
    assert_eq!(good.complaints(), [""; 0]);
    let bad = |what: &str, spoil: fn(&mut Report)| {
        let mut report = good.clone();
        spoil(&mut report);
        let complaints = report.complaints();
        assert!(
            complaints.len() == 1 && complaints[0].contains(what),
            "{what}: {complaints:?}"
        );
    };
    bad("deleted: x", |one| one.deletes.push("x".to_owned()));
    bad("gone: x", |one| one.wrong.push("x".to_owned()));
    bad("lease: x", |one| one.late.push("x".to_owned()));
    bad("the end: x", |one| one.differences.push("x".to_owned()));
    bad("noticed", |one| one.silences.push(None));
    bad("noticed", |one| one.silences.clear());
    bad("noticed", |one| {
        one.silences.push(Some(Duration::from_secs(61)));
    });
    bad("metrics", |one| one.failures = 0.0);
    bad("not ready", |one| {
        one.samples.last_mut().unwrap().ready = false;
    });
    bad("events", |one| one.samples[10].events = Some(3000.0));
    bad("memory", |one| {
        for (sample, more) in one.samples.iter_mut().zip(0..) {
            sample.memory += 100 * more;
        }
    });
    bad("files", |one| {
        for (sample, more) in one.samples.iter_mut().zip(0..) {
            sample.files += more / 2;
        }
    });
    bad("young", |one| {
        for sample in &mut one.samples[580..] {
            sample.process = 2;
        }
    });
}
