//! What the machine says about itself.

use std::fs;

use crate::registration::System;

/// Memory in KiB, as `/proc/meminfo` has it.
pub(crate) fn memory_kib() -> u64 {
    let table = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = table
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}

pub(crate) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}

pub(crate) fn system() -> System {
    let read = |path: &str| {
        fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let release = read("/etc/os-release");
    let pretty = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    System {
        machine_id: read("/etc/machine-id"),
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        kernel: read("/proc/sys/kernel/osrelease"),
        os_image: pretty.unwrap_or("Linux").trim_matches('"').to_owned(),
    }
}
