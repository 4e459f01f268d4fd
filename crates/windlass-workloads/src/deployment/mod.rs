mod condition;
mod history;
mod limits;
mod proportion;
mod revision;
mod rolling;
mod status;
mod template;
