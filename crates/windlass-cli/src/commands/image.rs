//! `windlass image`: an OCI image of the operator, without Docker.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use windlass_cluster::Runtime;

use crate::error::{Error, Result, at};
use crate::image::{self, Image};
use crate::interrupt::{self, Signals};
use crate::output::{Format, Output};
use crate::program::Program;
use crate::progress::Step;

/// Build an image of the operator, or load one into the embedded cluster
#[derive(Subcommand)]
pub(crate) enum Images {
    Build(Build),
    Load(Load),
}

impl Images {
    pub(crate) async fn run(self) -> Result<()> {
        match self {
            Self::Build(build) => build.run().await,
            Self::Load(load) => load.run(),
        }
    }
}

/// Build an OCI image of the operator's program, without Docker
#[derive(Args)]
#[command(after_help = "Examples:
  windlass image build --tag my-operator:1.0.0
  windlass image build --tag registry.example.com/my-operator:1.0.0 -o image.tar
  skopeo copy oci-archive:image.tar docker://registry.example.com/my-operator:1.0.0")]
pub(crate) struct Build {
    /// The image's name and tag; `<operator>:latest` unless given
    #[arg(long, short)]
    tag: Option<String>,
    /// The archive to write; `dist/<operator>.tar` unless given
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The Cargo profile to build with; `dev` is quick to build
    #[arg(long, default_value = "release", env = "WINDLASS_IMAGE_PROFILE")]
    profile: String,
    /// Print facts as JSON, for programs
    #[arg(long = "output", value_enum, value_name = "FORMAT")]
    format: Option<Format>,
}

impl Build {
    async fn run(self) -> Result<()> {
        // The archive is written whole: signals wait for that moment.
        let mut signals = Signals::listen()?;
        let program = Program::build(Path::new("."), Some(&self.profile), &mut signals).await?;
        let name = &program.project.project_name;
        let tag = image::full_name(&self.tag.unwrap_or_else(|| name.clone()))?;
        let out = self
            .out
            .unwrap_or_else(|| program.root.join("dist").join(format!("{name}.tar")));
        let step = Step::start(format!("writing {}", out.display()));
        let image = Image::of_program(&program.path, name, &tag)?;
        image.write(&out)?;
        drop(step);
        let digest = format!("sha256:{}", image.digest());
        let facts = json!({"image": tag, "digest": digest, "file": out});
        Output::from(self.format).print(&facts, || {
            format!(
                "{tag} is in {0} ({1} MB, {digest:.19}).\nNext: windlass image load {0}, or copy it to a registry\n",
                out.display(),
                image.megabytes()
            )
        });
        Ok(())
    }
}

/// Load an image into the embedded cluster
#[derive(Args)]
#[command(after_help = "Example:
  windlass image load dist/my-operator.tar")]
pub(crate) struct Load {
    /// An OCI archive, as `windlass image build` writes them
    #[arg(value_name = "FILE")]
    archive: PathBuf,
    /// The cluster's data folder
    #[arg(long, default_value = ".windlass")]
    data_dir: PathBuf,
    #[command(flatten)]
    output: Output,
}

impl Load {
    fn run(self) -> Result<()> {
        if !self.data_dir.is_dir() {
            return Err(Error::NotRunning(self.data_dir));
        }
        if Runtime::kept(&self.data_dir) == Some(Runtime::Process) {
            return Err(Error::Other(format!(
                "the cluster of {} runs pods as plain processes, which have no images; name the program in {} instead (docs/node.md), or use a cluster with `--runtime sandbox`",
                self.data_dir.display(),
                self.data_dir.join("images.yaml").display()
            )));
        }
        let tag = image::tag_of(&self.archive)?;
        let _step = Step::start(format!("loading {tag}"));
        let _held = interrupt::hold();
        let folder = self.data_dir.join("images");
        std::fs::create_dir_all(&folder).map_err(at(&folder))?;
        let to = folder.join(image::file_name(&tag));
        let unfinished = to.with_extension("new");
        std::fs::copy(&self.archive, &unfinished).map_err(at(&self.archive))?;
        std::fs::rename(&unfinished, &to).map_err(at(&to))?;
        self.output.print(&json!({"image": tag, "file": to}), || {
            format!("{tag} is loaded; pods that name it run it.\n")
        });
        Ok(())
    }
}
