"""What the programs of others show of a store. A reader takes a store and returns what it shows of each array:
the names of its dimensions, None where it knows none, and its values; or the exception that it raised. A store is
the path of a folder, a reference set or a repository of icechunk, a URL, or a store of zarr-python."""

import json
import os
import subprocess
import sys

import numpy as np
import xarray as xr
import zarr

REFERENCES = (".json", ".parq")


def zarr_store(store):
    """A store as zarr-python takes it."""
    if not isinstance(store, str):
        return store
    if store.endswith(REFERENCES):
        import fsspec

        lazy = {"lazy": True} if store.endswith(".parq") else {}
        fs = fsspec.filesystem("reference", fo=store, asynchronous=True, remote_protocol="file", **lazy)
        return zarr.storage.FsspecStore(fs, read_only=True, path="")
    if store.startswith("http"):
        return zarr.storage.FsspecStore.from_url(store, read_only=True)
    if store.endswith(".icechunk"):
        from meaning_sources import icechunk_repository

        return icechunk_repository(store).readonly_session("main").store
    return store


def each(names, read):
    """What read returns for each name."""
    out = {}
    for name in names:
        try:
            out[name] = read(name)
        except Exception as e:
            out[name] = e
    return out


def through_xarray(store, decode=True, **more):
    kwargs = {} if decode else {"decode_cf": False}
    if more:
        ds = xr.open_dataset(store, **kwargs, **more)
    else:
        ds = xr.open_zarr(zarr_store(store), consolidated=False, chunks=None, **kwargs)
    with ds:
        return each(list(ds.variables), lambda name: (ds[name].dims, np.asarray(ds[name].values)))


def arrays(store):
    """The arrays of zarr-python by name."""
    if isinstance(store, str) and not store.startswith("http"):
        return dict(zarr.open_group(zarr_store(store), mode="r").arrays())
    return dict(zarr.open_group(zarr_store(store), mode="r", use_consolidated=False).arrays())


def through_zarr(store):
    found = arrays(store)
    return each(found, lambda name: (None, np.asarray(found[name][...])))


def through_zarrs(store):
    import zarrs  # noqa: F401

    with zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"}):
        return through_zarr(store)


def through_tensorstore(store):
    import tensorstore

    names = arrays(store)

    def read(name):
        at = f"{store}/{name}/"
        kv = {"driver": "http", "base_url": at} if store.startswith("http") else {"driver": "file", "path": at}
        driver = "zarr3" if names[name].metadata.zarr_format == 3 else "zarr"
        return None, np.asarray(tensorstore.open({"driver": driver, "kvstore": kv}, read=True, open=True).result().read().result())

    return each(names, read)


def through_gdal(store):
    import rasterio

    def read(name):
        with rasterio.open(f"{store}/{name}") as src:
            return None, src.read() if src.count > 1 else src.read(1)

    return each([name for name, a in arrays(store).items() if a.ndim > 1], read)


SAVE = """
import sys, json, numpy as np
junk = [np.full(6, 77, dtype=t) for t in ("i2", "u1", "f4", "f8", "i8") for _ in range(50)]
del junk
out = {}
for name, a in arrays(sys.argv[1]):
    try:
        np.save(sys.argv[2] + name, np.asarray(a[...]))
        out[name] = None
    except Exception as e:
        out[name] = str(e)
print(json.dumps(out))
"""
OLD = """
import zarr
def arrays(store):
    return zarr.open(store, "r").arrays()
"""
NETCDF = """
import netCDF4
def arrays(store):
    d = netCDF4.Dataset(f"file://{store}#mode=zarr,file")
    d.set_auto_maskandscale(False)
    return d.variables.items()
"""


def through_process(python, arrays, dir):
    """A reader in a process of its own: with other packages than this one, or one that may crash."""

    def read(store):
        into = f"{dir}/saved-"
        p = subprocess.run([python, "-W", "ignore", "-c", arrays + SAVE, store, into], capture_output=True, text=True, timeout=300)
        if p.returncode:
            raise RuntimeError((p.stderr.strip() or f"exit code {p.returncode}").splitlines()[-1])

        def one(name):
            if failed[name]:
                raise RuntimeError(failed[name])
            values = np.load(f"{into}{name}.npy")
            os.remove(f"{into}{name}.npy")
            return None, values

        failed = json.loads(p.stdout)
        return each(failed, one)

    return read


def readers(old, dir):
    """All readers by name. "xarray" comes first, then those that show stored elements."""
    return {
        "xarray": through_xarray,
        "xarray raw": lambda s: through_xarray(s, decode=False),
        "zarr-python 3": through_zarr,
        "zarr-python 2": old and through_process(old, OLD, dir),
        "tensorstore": through_tensorstore,
        "zarrs": through_zarrs,
        "netCDF4": through_process(sys.executable, NETCDF, dir),
        "GDAL": through_gdal,
    }


# Readers of other conventions -----------------------------------------------------------


def anndata_source(path, version):
    import anndata
    import pandas as pd
    import scipy.sparse

    obs = pd.DataFrame({"kind": pd.Categorical(["a", "b", "a"]), "name": ["x", "", "z"], "n": pd.array([1, None, 3], dtype="Int64"), "good": [True, False, True]}, index=["r1", "r2", "r3"])
    a = anndata.AnnData(scipy.sparse.csr_matrix(np.eye(3, 4, dtype="f4")), obs=obs, layers={"dense": np.arange(12.0).reshape(3, 4)}, uns={"title": "längst", "k": 3, "nested": {"x": np.arange(3)}})
    anndata.settings.zarr_write_format = version
    a.write_zarr(path)


def through_anndata(store):
    import anndata

    a = anndata.read_zarr(store)
    out = {"X": a.X.toarray(), "dense": a.layers["dense"], "title": a.uns["title"], "k": a.uns["k"], "nested": a.uns["nested"]["x"], "index": a.obs.index}
    out |= {name: a.obs[name].astype(object) for name in a.obs}
    return {name: (None, np.asarray(v).astype(str)) for name, v in out.items()}


def ome_source(path, version):
    """Images with labels and a plate of ome-zarr."""
    import ome_zarr.writer as w
    from ome_zarr.format import FormatV04, FormatV05

    fmt = FormatV05() if version == 3 else FormatV04()
    root = zarr.open_group(path, mode="w", zarr_format=version)
    image = np.arange(2 * 32 * 32, dtype="u2").reshape(2, 32, 32)
    axes = [{"name": "c", "type": "channel"}, {"name": "y", "type": "space", "unit": "micrometer"}, {"name": "x", "type": "space", "unit": "micrometer"}]
    channel = {"color": "FF0000", "label": "r", "active": True, "window": {"start": 0, "end": 255, "min": 0, "max": 65535}}

    def change(group, **members):
        if version == 3:
            group.attrs["ome"] = dict(group.attrs["ome"], **members)
        else:
            group.attrs.update(members)

    def write(group):
        w.write_image(image, group, axes=axes, fmt=fmt)
        change(group, omero={"channels": [channel, channel]})

    write(root.create_group("image"))
    nuclei = (image % 3).astype("u1")
    w.write_labels(nuclei, root["image"], "nuclei", axes=axes, fmt=fmt, label_metadata={"colors": [{"label-value": 1, "rgba": [255, 0, 0, 255]}], "source": {"image": "../../"}})
    if version == 3:
        change(root["image/labels"], version="0.5")  # which ome-zarr leaves out, against the specification
    plate = root.create_group("plate")
    w.write_plate_metadata(plate, ["A"], ["1", "2"], ["A/1"], fmt=fmt)
    well = plate.create_group("A").create_group("1")
    w.write_well_metadata(well, ["0"], fmt=fmt)
    write(well.create_group("0"))


def through_ome(store):
    """What ome-zarr shows of the images below a store. The models of ome-zarr-models and the schemas of NGFF must allow the metadata."""
    import importlib.util
    import pathlib

    import jsonschema
    import ome_zarr_models
    import referencing
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader

    root = zarr.open_group(store, mode="r")
    version = "0.5" if root.metadata.zarr_format == 3 else "0.4"
    package = importlib.util.find_spec("ngff_zarr").submodule_search_locations[0]
    schemas = {f.stem: json.loads(f.read_text()) for f in pathlib.Path(package, "spec", version, "schemas").glob("*.schema")}
    registry = referencing.Registry().with_contents([(s["$id"], s) for s in schemas.values() if "$schema" in s])
    out, checked = {}, 0
    for path in ["image", "image/labels", "image/labels/nuclei", "plate", "plate/A/1", "plate/A/1/0"]:
        attrs = dict(root[path].attrs)
        inside = attrs.get("ome", {}) if version == "0.5" else attrs
        for member, schema in [("multiscales", "image"), ("image-label", "label"), ("plate", "plate"), ("well", "well")]:
            if member in inside:
                jsonschema.Draft202012Validator(schemas[schema], registry=registry).validate(attrs)
                checked += 1
        if ome_zarr_models.open_ome_zarr(root[path]).ome_zarr_version != version:
            raise ValueError(f"{path} is of another version than {version}")
        for i, node in enumerate(Reader(parse_url(f"{store}/{path}"))()):
            what = {k: v for k, v in node.metadata.items() if k in ("axes", "name", "channel_names", "coordinateTransformations", "color", "colormap", "contrast_limits", "visible")}
            out[f"{path} {i}"] = (None, np.array([json.dumps(what, default=str, sort_keys=True)]))
            for level, data in enumerate(node.data):
                out[f"{path} {i} level {level}"] = (None, np.asarray(data))
    if checked != 6:
        raise ValueError(f"{checked} documents are checked, not 6")
    return out
