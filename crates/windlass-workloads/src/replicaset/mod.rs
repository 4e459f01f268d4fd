mod batches;
mod ranking;
mod status;
