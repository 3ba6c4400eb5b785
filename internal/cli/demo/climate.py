"""Writes climate.zarr, the data of `zarrdb demo`, with xarray and zarr-python.

    pip install xarray==2026.9.0 zarr==3.1.6 statsmodels==0.15.0 && python climate.py DEST

The series are in the public domain and come with statsmodels:
elnino   averaged monthly sea surface temperature, Nino regions 1+2, 1950-2010 (NOAA)
co2      atmospheric CO2 at Mauna Loa, weekly, 1958-2001 (Scripps / NOAA)
sunspots yearly sunspot numbers 1700-2008 (NOAA)
"""
import sys, numpy as np, xarray as xr, statsmodels.api as sm
dest = sys.argv[1]
el = sm.datasets.elnino.load_pandas().data
co2 = sm.datasets.co2.load_pandas().data["co2"]
sun = sm.datasets.sunspots.load_pandas().data
sst = xr.Dataset(
    {"sst": (("year", "month"), el.iloc[:, 1:].to_numpy("float32"), {"units": "degC", "long_name": "sea surface temperature, Nino 1+2"})},
    coords={"year": ("year", el.iloc[:, 0].to_numpy("int16")), "month": ("month", np.arange(1, 13, dtype="int8"))},
    attrs={"source": "NOAA, public domain"})
air = xr.Dataset(
    {"co2": (("week",), co2.to_numpy("float32"), {"units": "ppm", "long_name": "CO2 at Mauna Loa"})},
    coords={"week": ("week", ((co2.index.to_numpy() - np.datetime64("1958-01-01")) / np.timedelta64(1, "D")).astype("int32"), {"units": "days since 1958-01-01"})},
    attrs={"source": "Scripps Institution of Oceanography / NOAA, public domain"})
solar = xr.Dataset(
    {"sunspots": (("year",), sun.iloc[:, 1].to_numpy("float32"), {"units": "1"})},
    coords={"year": ("year", sun.iloc[:, 0].to_numpy("int16"))}, attrs={"source": "NOAA, public domain"})
import zarr
zarr.create_group(dest, attributes={"title": "Three climate series", "Conventions": "CF-1.11"})
sst.to_zarr(dest, group="ocean", mode="a", consolidated=False, encoding={"sst": {"chunks": (16, 12)}})
air.to_zarr(dest, group="air", mode="a", consolidated=False, encoding={"co2": {"chunks": (512,)}, "week": {"chunks": (512,)}})
solar.to_zarr(dest, group="sun", mode="a", consolidated=False)
