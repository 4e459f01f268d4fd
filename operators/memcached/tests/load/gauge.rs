//! What a process has used, from `/proc`.

use std::fs;

/// Clock ticks of the kernel in a second, as Linux reports them to programs.
const TICKS: f64 = 100.0;

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    /// Seconds of a processor.
    pub(crate) seconds: f64,
    /// Resident memory now and at most, in MiB.
    pub(crate) resident: f64,
    pub(crate) peak: f64,
}

/// What the process has used so far; `self` is a process too.
pub(crate) fn used(process: &str) -> Used {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks.filter_map(|field| field.parse::<f64>().ok());
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mebibytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kibibytes.unwrap_or_default() / 1024.0
    };
    Used {
        seconds: ticks.sum::<f64>() / TICKS,
        resident: mebibytes("VmRSS:"),
        peak: mebibytes("VmHWM:"),
    }
}
