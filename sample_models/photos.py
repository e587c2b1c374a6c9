"""Prepare the photographs that the image samples train on.

scikit-learn ships two real photographs, a Chinese temple and a flower. This program cuts JPEG
crops out of them, labels each by its photograph, and writes them once as TFRecords (about 55 MB):

    python sample_models/photos.py FOLDER

The samples call `folder()`, which prepares the data on first use. It looks in $TFAUDIT_DEMO_DATA,
else in a tfaudit-demo folder in the user's cache. Not a model, so there is nothing to audit.
"""

import io
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

SHARDS = 8
CROPS_PER_SHARD = 160
CROP_SIDE = 384  # pixels; the photographs are 640 × 427
CLASSES = ("china", "flower")


def folder() -> Path:
    """The folder with the prepared data, prepared now if it is not there yet."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return prepare(os.environ.get("TFAUDIT_DEMO_DATA") or cache / "tfaudit-demo")


def shards(folder) -> list[Path]:
    """The TFRecord files that a complete folder holds."""
    return [Path(folder) / f"photos-{i:05}-of-{SHARDS:05}.tfrecord" for i in range(SHARDS)]


def prepare(folder) -> Path:
    """Fill the folder, in one step, unless it is complete already."""
    folder = Path(folder).expanduser().resolve()
    if all(shard.exists() for shard in shards(folder)):
        return folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SystemExit(f"{folder} holds something else: name a new or an empty folder.")
    photographs = load_photographs()
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for seed, shard in enumerate(shards(unfinished)):
            write_shard(shard, photographs, random.Random(seed))
        unfinished.chmod(0o755)
        unfinished.replace(folder)
    except OSError as error:
        # Another process may have finished first; then its data is as good as ours.
        if not all(shard.exists() for shard in shards(folder)):
            raise SystemExit(f"Cannot prepare the photographs in {folder}: {error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def load_photographs():
    """scikit-learn's two photographs as Pillow images, in the order of CLASSES."""
    try:
        from PIL import Image
        from sklearn.datasets import load_sample_images
    except ImportError as error:
        raise SystemExit(
            "The photographs come with scikit-learn and are cut with Pillow: "
            f"pip install scikit-learn pillow ({error})."
        ) from error

    samples = load_sample_images()
    images = {Path(name).stem: pixels for name, pixels in zip(samples.filenames, samples.images, strict=True)}
    return [Image.fromarray(images[name]) for name in CLASSES]


def write_shard(path, photographs, rng):
    """Write one TFRecord file of crops, the photographs taking turns."""
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        for i in range(CROPS_PER_SHARD):
            label = i % len(photographs)
            photograph = photographs[label]
            left = rng.randint(0, photograph.width - CROP_SIDE)
            top = rng.randint(0, photograph.height - CROP_SIDE)
            crop = photograph.crop((left, top, left + CROP_SIDE, top + CROP_SIDE))
            jpeg = io.BytesIO()
            crop.save(jpeg, "JPEG", quality=90)
            features = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg.getvalue()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString(deterministic=True))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python photos.py FOLDER")
    print(prepare(sys.argv[1]))
