//! Makes a failing sequence as short as it can be.

use crate::case::Step;

/// Removes steps, many at a time and then one by one, as long as the rest still fails.
pub(crate) async fn shrink<F, Fut>(steps: Vec<Step>, fails: F) -> Vec<Step>
where
    F: Fn(Vec<Step>) -> Fut,
    Fut: Future<Output = bool>,
{
    let mut steps = steps;
    let mut chunk = steps.len().div_ceil(2);
    while chunk > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + chunk).min(steps.len()));
            // A background watch without its end would wait for ever.
            let ended = |path: &str| {
                fewer
                    .iter()
                    .any(|step| step.path == path && step.name.ends_with("end of watches"))
            };
            let background =
                |step: &&Step| step.watch.as_ref().is_some_and(|watch| watch.background);
            let ends = fewer
                .iter()
                .filter(background)
                .all(|step| ended(&step.path));
            if !fewer.is_empty() && ends && fails(fewer.clone()).await {
                steps = fewer;
            } else {
                at += chunk;
            }
        }
        chunk /= 2;
    }
    steps
}

/// The steps as a script: a case file that `cases/` would take.
pub(crate) fn script(steps: &[Step]) -> String {
    serde_saphyr::to_string(&steps).unwrap_or_else(|error| error.to_string())
}
