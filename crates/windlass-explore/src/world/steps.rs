//! What a user does: the steps of a scenario.

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{Unusable, World};
use crate::invariant;
use crate::plan::Act;
use crate::scenario::{Power, Step};

impl World<'_> {
    pub(super) async fn step(&mut self, step: &Step, act: Option<Act>) -> Result<(), Unusable> {
        let refused = |why: String| Unusable::Refused {
            what: step.to_string(),
            why,
        };
        match step {
            Step::Apply(objects) => {
                for object in objects {
                    self.wait_until_gone(object).await?;
                    self.ground.apply(object).await?;
                }
            }
            Step::Patch(named, patch) => {
                let api = self.ground.api(named).await.map_err(refused)?;
                let patched = api
                    .patch(&named.name, &PatchParams::default(), &Patch::Merge(patch))
                    .await;
                patched.map_err(|error| refused(error.to_string()))?;
            }
            Step::Delete(named) => {
                let api = self.ground.api(named).await.map_err(refused)?;
                let params = match act {
                    Some(Act::Foreground) => DeleteParams::foreground(),
                    _ => DeleteParams::default(),
                };
                match api.delete(&named.name, &params).await {
                    Ok(_) => {}
                    Err(kube::Error::Api(status)) if status.code == 404 => {}
                    Err(error) => return Err(refused(error.to_string())),
                }
            }
            Step::Wait(named, expression) => {
                let limit = Instant::now() + self.base.pace.limit;
                loop {
                    let api = self.ground.api(named).await.map_err(refused)?;
                    let found = api.get_opt(&named.name).await;
                    let found = found.map_err(|error| refused(error.to_string()))?;
                    let value = found.map_or(Value::Null, |found| json!(found));
                    if invariant::holds_for(expression, &value)
                        .map_err(|why| refused(why.to_string()))?
                    {
                        return Ok(());
                    }
                    if Instant::now() > limit {
                        return Err(refused(format!(
                            "it did not become so within {:?}",
                            self.base.pace.limit
                        )));
                    }
                    sleep(self.base.pace.tick).await;
                    self.tend().await?;
                }
            }
            Step::Advance(time) => {
                let until = Instant::now() + *time;
                while Instant::now() < until {
                    sleep(self.base.pace.tick).await;
                    self.tend().await?;
                }
            }
            Step::Operator(Power::Down) => {
                self.kill().await;
                self.is_up = false;
            }
            Step::Operator(Power::Up) => {
                self.start()?;
                self.is_up = true;
            }
        }
        Ok(())
    }

    /// Waits for the end of an object that is being deleted: what is applied is meant to be another.
    async fn wait_until_gone(&mut self, object: &Value) -> Result<(), Unusable> {
        let Some(named) = crate::scenario::named(object) else {
            return Ok(());
        };
        let limit = Instant::now() + self.base.pace.limit / 4;
        while Instant::now() < limit {
            let Ok(api) = self.ground.api(&named).await else {
                return Ok(());
            };
            let found = api.get_opt(&named.name).await.ok().flatten();
            if found.is_none_or(|found| found.metadata.deletion_timestamp.is_none()) {
                return Ok(());
            }
            if self.edge.let_go() {
                self.start()?;
            }
            sleep(self.base.pace.tick).await;
            self.tend().await?;
        }
        Ok(())
    }
}
