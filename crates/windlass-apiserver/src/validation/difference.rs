//! The unified difference of two texts, found as Python's `difflib` finds it.
//!
//! Longest common runs of lines first, then the same left and right of them. In long texts, lines
//! that come up all the time start no run.

use std::collections::HashMap;
use std::fmt::Write as _;

/// Lines of agreement around a difference.
const CONTEXT: usize = 3;
/// From how many lines on some are too common to start a run.
const LONG: usize = 200;

/// A run of lines that both have: where it starts in each, and how long it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    old: usize,
    new: usize,
    length: usize,
}

/// Lines of both that are equal, or that take each other's place.
#[derive(Clone, Copy)]
struct Step {
    equal: bool,
    old: (usize, usize),
    new: (usize, usize),
}

/// How `old` became `new`, empty when it did not.
pub(crate) fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut out = String::new();
    for group in groups(&steps(&old, &new)) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let _ = writeln!(
            out,
            "@@ -{} +{} @@",
            range(first.old.0, last.old.1),
            range(first.new.0, last.new.1)
        );
        for step in &group {
            let mut tell = |mark: char, lines: &[&str]| {
                for line in lines {
                    let _ = writeln!(out, "{mark}{line}");
                }
            };
            if step.equal {
                tell(' ', &old[step.old.0..step.old.1]);
            } else {
                tell('-', &old[step.old.0..step.old.1]);
                tell('+', &new[step.new.0..step.new.1]);
            }
        }
    }
    out
}

fn range(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    }
}

/// The steps around each difference, with some agreement on both sides.
fn groups(steps: &[Step]) -> Vec<Vec<Step>> {
    let mut steps = steps.to_vec();
    if let Some(first) = steps.first_mut().filter(|step| step.equal) {
        first.old.0 = first.old.0.max(first.old.1.saturating_sub(CONTEXT));
        first.new.0 = first.new.0.max(first.new.1.saturating_sub(CONTEXT));
    }
    if let Some(last) = steps.last_mut().filter(|step| step.equal) {
        last.old.1 = last.old.1.min(last.old.0 + CONTEXT);
        last.new.1 = last.new.1.min(last.new.0 + CONTEXT);
    }
    let mut groups = Vec::new();
    let mut group: Vec<Step> = Vec::new();
    for mut step in steps {
        if step.equal && step.old.1 - step.old.0 > 2 * CONTEXT {
            let mut end = step;
            end.old.1 = end.old.1.min(end.old.0 + CONTEXT);
            end.new.1 = end.new.1.min(end.new.0 + CONTEXT);
            group.push(end);
            groups.push(std::mem::take(&mut group));
            step.old.0 = step.old.0.max(step.old.1.saturating_sub(CONTEXT));
            step.new.0 = step.new.0.max(step.new.1.saturating_sub(CONTEXT));
        }
        group.push(step);
    }
    if group.iter().any(|step| !step.equal) {
        groups.push(group);
    }
    groups.retain(|group| group.iter().any(|step| !step.equal));
    groups
}

fn steps(old: &[&str], new: &[&str]) -> Vec<Step> {
    let mut steps = Vec::new();
    let (mut i, mut j) = (0, 0);
    for run in runs(old, new) {
        if i < run.old || j < run.new {
            steps.push(Step {
                equal: false,
                old: (i, run.old),
                new: (j, run.new),
            });
        }
        (i, j) = (run.old + run.length, run.new + run.length);
        if run.length > 0 {
            steps.push(Step {
                equal: true,
                old: (run.old, i),
                new: (run.new, j),
            });
        }
    }
    steps
}

/// All common runs in order, adjacent ones joined, with an empty one at the end.
fn runs(old: &[&str], new: &[&str]) -> Vec<Run> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, line) in new.iter().enumerate() {
        places.entry(line).or_default().push(index);
    }
    if new.len() >= LONG {
        places.retain(|_, found| found.len() <= new.len() / 100 + 1);
    }
    let mut found = Vec::new();
    let mut open = vec![(0, old.len(), 0, new.len())];
    while let Some((old_low, old_high, new_low, new_high)) = open.pop() {
        let run = longest(old, new, &places, (old_low, old_high), (new_low, new_high));
        if run.length == 0 {
            continue;
        }
        found.push(run);
        open.push((old_low, run.old, new_low, run.new));
        open.push((
            run.old + run.length,
            old_high,
            run.new + run.length,
            new_high,
        ));
    }
    found.sort_unstable();
    let mut joined: Vec<Run> = Vec::new();
    for run in found {
        match joined.last_mut() {
            Some(last)
                if last.old + last.length == run.old && last.new + last.length == run.new =>
            {
                last.length += run.length;
            }
            _ => joined.push(run),
        }
    }
    joined.push(Run {
        old: old.len(),
        new: new.len(),
        length: 0,
    });
    joined
}

fn longest(
    old: &[&str],
    new: &[&str],
    places: &HashMap<&str, Vec<usize>>,
    (old_low, old_high): (usize, usize),
    (new_low, new_high): (usize, usize),
) -> Run {
    let mut best = Run {
        old: old_low,
        new: new_low,
        length: 0,
    };
    // How long the run is that ends at each line of `new`.
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for (i, line) in old.iter().enumerate().take(old_high).skip(old_low) {
        let mut next = HashMap::new();
        for &j in places.get(line).into_iter().flatten() {
            if j < new_low {
                continue;
            }
            if j >= new_high {
                break;
            }
            let length = j
                .checked_sub(1)
                .and_then(|j| lengths.get(&j))
                .map_or(1, |length| length + 1);
            next.insert(j, length);
            if length > best.length {
                best = Run {
                    old: i + 1 - length,
                    new: j + 1 - length,
                    length,
                };
            }
        }
        lengths = next;
    }
    while best.old > old_low && best.new > new_low && old[best.old - 1] == new[best.new - 1] {
        best = Run {
            old: best.old - 1,
            new: best.new - 1,
            length: best.length + 1,
        };
    }
    while best.old + best.length < old_high
        && best.new + best.length < new_high
        && old[best.old + best.length] == new[best.new + best.length]
    {
        best.length += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_is_told_with_its_neighbours() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh";
        let new = "a\nb\nc\nd\nE\nf\ng\nh";
        assert_eq!(
            unified(old, new),
            "@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n"
        );
        assert_eq!(unified(old, old), "");
        assert_eq!(unified("a", "a\nb"), "@@ -1 +1,2 @@\n a\n+b\n");
    }

    proptest::proptest! {
        #[test]
        fn applying_it_gives_the_new_text(old in "([abc]\n){0,30}", new in "([abc]\n){0,30}") {
            let (old_lines, new_lines): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
            let mut made: Vec<&str> = Vec::new();
            for step in steps(&old_lines, &new_lines) {
                if step.equal {
                    made.extend(&old_lines[step.old.0..step.old.1]);
                } else {
                    made.extend(&new_lines[step.new.0..step.new.1]);
                }
            }
            proptest::prop_assert_eq!(made, new_lines);
        }
    }
}
