# ruff: noqa: E741
"""Kernels for GPUs in half precision, channels-last: what an emitter for Triton should write.

They are written by hand, to find out which design is fast before one is emitted. Data has the
layout [n, h, w, channels], weights [terms, outputs], where a term is a tap of the window and a
channel, channels inside. One pipelined loop goes over all terms; sums are float32.

Descriptors: data and weights are read by the copy engine. What lies outside of a map reads as zero
and is not written, so that no window needs a mask or a halo of zeros, and a tile may reach over
the rim of a map. A tile is `TN` images by `TH` rows by `TW` columns: with `TH` = 1 the row is a
scalar, and any map of rows (a rotation, a quotient) costs nothing.

Pointers: data has a halo of zeros, a tile is a run of pixels, and any map of places is possible.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def place(tile, H, W, TN: tl.constexpr, TH: tl.constexpr, TW: tl.constexpr):
    """First image, row and column of a tile of the result."""
    across = tl.cdiv(W, TW)
    up = tl.cdiv(H, TH)
    return tile // (across * up) * TN, tile // across % up * TH, tile % across * TW


@triton.jit
def finished(total, bias, o0, BN: tl.constexpr, EPILOGUE: tl.constexpr):
    """The sums with `EPILOGUE` 1 with bias, with 2 with bias and ReLU."""
    if EPILOGUE > 0:
        total += tl.load(bias + o0 + tl.arange(0, BN))[None, :]
    if EPILOGUE > 1:
        total = tl.maximum(total, 0.0)
    return total


@triton.jit
def last_sum(
    total, partial, count, tile, part, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """Adds the sums of programs that share a tile; the flag: whether this one is the last of them,
    which has them all."""
    here = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(partial + (tile * SPLIT + part) * (BM * BN) + here, total)
    tl.debug_barrier()
    before = tl.atomic_add(count + tile, 1)
    last = before == SPLIT - 1
    if last:
        tl.debug_barrier()
        total = tl.zeros((BM, BN), tl.float32)
        for other in range(SPLIT):
            total += tl.load(
                partial + (tile * SPLIT + other) * (BM * BN) + here, cache_modifier=".cg"
            )
        tl.store(count + tile, 0)
    return total, last


@triton.jit
def rotated_row(h, tap, H, KH: tl.constexpr):
    """The row of the data for a row of the result: bound to the map first, then rotated by one."""
    row = h + tap - KH // 2
    return tl.where((row >= 0) & (row < H), tl.where(row + 1 == H, 0, row + 1), -1)


@triton.jit
def convolution(
    x,  # descriptor [N, H, W, channels], blocks [TN, TH, TW, BK]
    w,  # descriptor [KH * KW * CG, O], blocks [BK, BN]
    y,  # descriptor [N, H, W, O], blocks [TN, TH, TW, BN]
    residual,  # as y
    bias,
    partial,
    count,
    H,
    W,
    O,
    CG,  # channels of the data that an output sums in one tap
    OG,  # outputs that share them
    PERIOD,  # outputs after which the groups begin anew
    KH: tl.constexpr,
    KW: tl.constexpr,
    SLICES: tl.constexpr,  # the data has a slice of CG channels for each column of the window
    ROTATE: tl.constexpr,  # the result is that for the next row
    RESIDUAL: tl.constexpr,
    EPILOGUE: tl.constexpr,
    SPLIT: tl.constexpr,
    SWAP: tl.constexpr,  # outputs are the rows of the product, pixels its columns
    TN: tl.constexpr,
    TH: tl.constexpr,
    TW: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """A convolution with groups; `SPLIT` programs share the terms of a tile."""
    M: tl.constexpr = TN * TH * TW
    down = O // BN
    tile = tl.program_id(0)
    part = tl.program_id(1)
    o0 = tile % down * BN
    n0, h0, w0 = place(tile // down, H, W, TN, TH, TW)
    c0 = o0 % PERIOD // OG * CG
    blocks = CG // BK
    steps = KH * KW * blocks
    begin = part * steps // SPLIT
    end = (part + 1) * steps // SPLIT
    tap = begin // blocks
    c = begin % blocks * BK
    if SWAP:
        total = tl.zeros((BN, M), tl.float32)
    else:
        total = tl.zeros((M, BN), tl.float32)
    for step in range(begin, end):
        row = h0 + tap // KW - KH // 2
        column = w0 + tap % KW - KW // 2
        channel = c0 + c
        if SLICES:
            channel += tap % KW * CG
        if ROTATE and TH == 1:
            a = x.load([n0, tl.where(row + 1 == H, 0, row + 1), column, channel])
        elif ROTATE:  # the first row comes after the last: at most one of two reads is inside
            a = x.load([n0, row + 1, column, channel]) + x.load([n0, row + 1 - H, column, channel])
        else:
            a = x.load([n0, row, column, channel])
        b = w.load([step * BK, o0])
        a = a.reshape(M, BK)
        if SWAP:
            total = tl.dot(tl.trans(b), tl.trans(a), total)
        else:
            total = tl.dot(a, b, total)
        c += BK
        tap = tl.where(c == CG, tap + 1, tap)
        c = tl.where(c == CG, 0, c)
    if SWAP:
        total = tl.trans(total)
    last = True
    if SPLIT > 1:
        total, last = last_sum(total, partial, count, tile, part, SPLIT, M, BN)
    if last:
        if RESIDUAL:
            total += residual.load([n0, h0, w0, o0]).reshape(M, BN)
        out = finished(total, bias, o0, BN, EPILOGUE)
        y.store([n0, h0, w0, o0], out.to(y.dtype).reshape(TN, TH, TW, BN))


@triton.jit
def operator_1(
    x,  # descriptor [N, H, W, C], blocks [TN, TH, TW, BX]
    first,  # descriptor [KW * C, BZ], blocks [BX, BZ]; zeros between groups
    w,  # descriptor [KH * KW * Z, O], blocks [BZ, BN]
    y,
    H,
    W,
    O,
    C,
    KH: tl.constexpr,
    KW: tl.constexpr,
    TN: tl.constexpr,
    TH: tl.constexpr,
    TW: tl.constexpr,
    BN: tl.constexpr,
    BX: tl.constexpr,
    BZ: tl.constexpr,
):
    """Both steps of Operator 1: the tensor between them is computed anew for each tap."""
    M: tl.constexpr = TN * TH * TW
    down = O // BN
    tile = tl.program_id(0)
    o0 = tile % down * BN
    n0, h0, w0 = place(tile // down, H, W, TN, TH, TW)
    blocks = C // BX
    tap = 0
    c = 0
    total = tl.zeros((M, BN), tl.float32)
    for step in range(KH * KW * blocks):
        a = x.load([n0, h0 + tap // KW - KH // 2, w0 + tap % KW - KW // 2, c]).reshape(M, BX)
        z = tl.dot(a, first.load([tap % KW * C + c, 0]))
        total = tl.dot(z.to(y.dtype), w.load([step * BZ, o0]), total)
        c += BX
        tap = tl.where(c == C, tap + 1, tap)
        c = tl.where(c == C, 0, c)
    y.store([n0, h0, w0, o0], total.to(y.dtype).reshape(TN, TH, TW, BN))


@triton.jit
def operator_2(
    x,  # descriptor [N, H, W, C], blocks [TN, 1, TW, BX]
    first,  # descriptor [KW * C, BZ], blocks [BX, BZ]
    w,  # descriptor [KH * Z, O], blocks [BZ, BN]
    y,
    H,
    W,
    O,
    C,
    KH: tl.constexpr,
    KW: tl.constexpr,
    TN: tl.constexpr,
    TH: tl.constexpr,
    TW: tl.constexpr,
    BN: tl.constexpr,
    BX: tl.constexpr,
    BZ: tl.constexpr,
):
    """Both steps of Operator 2: the first sums along the columns of the window, then its rows."""
    M: tl.constexpr = TN * TH * TW
    down = O // BN
    tile = tl.program_id(0)
    o0 = tile % down * BN
    n0, h0, w0 = place(tile // down, H, W, TN, TH, TW)
    blocks = C // BX
    tap = 0
    c = 0
    total = tl.zeros((M, BN), tl.float32)
    for step in range(KH * blocks):
        row = rotated_row(h0, tap, H, KH)
        z = tl.zeros((M, BZ), tl.float32)
        for column in tl.static_range(KW):
            a = x.load([n0, row, w0 + column - KW // 2, c]).reshape(M, BX)
            z = tl.dot(a, first.load([column * C + c, 0]), z)
        total = tl.dot(z.to(y.dtype), w.load([step * BZ, o0]), total)
        c += BX
        tap = tl.where(c == C, tap + 1, tap)
        c = tl.where(c == C, 0, c)
    y.store([n0, h0, w0, o0], total.to(y.dtype).reshape(TN, TH, TW, BN))


@triton.jit
def pointers(
    x,  # [N, HP, WP, CX], zeros around each map
    w,  # [KH * KW * CG, O]
    y,  # [N, HQ, WQ, O]; what lies around each map stays as it is
    residual,  # as y
    bias,
    partial,
    count,
    pixels,
    H,
    W,
    HP,
    WP,
    CX,
    X0,  # place in the data of the first tap of the first pixel
    HQ,
    WQ,
    O,
    Y0,  # place in the result of the first pixel
    CG,  # channels of the data that an output sums in one tap
    OG,  # outputs that share them
    PERIOD,  # outputs after which the groups begin anew
    KH: tl.constexpr,
    KW: tl.constexpr,
    STRIDE: tl.constexpr,
    SLICES: tl.constexpr,  # the data has a slice of CG channels for each column of the window
    ROTATE: tl.constexpr,  # the result is that for the next row
    ALIGN: tl.constexpr,  # what places in the data are multiples of
    RESIDUAL: tl.constexpr,
    EPILOGUE: tl.constexpr,
    EARLY: tl.constexpr,  # the kernel begins while the one before it ends
    SPLIT: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """A convolution with plain addresses."""
    tile = tl.program_id(0)
    part = tl.program_id(1)
    down = O // BN
    o0 = tile % down * BN
    pixel = tile // down * BM + tl.arange(0, BM)
    pixel = tl.where(pixel < pixels, pixel, 0)
    n = pixel // (H * W)
    h = pixel % (H * W) // W
    v = pixel % W
    row = h
    if ROTATE:
        row = tl.where(h + 1 == H, 0, h + 1)
    base = ((n * HP + row * STRIDE) * WP + v * STRIDE) * CX + X0
    base += o0 % PERIOD // OG * CG
    # Without the hints loads are 2 bytes wide, and none is asynchronous.
    base = tl.multiple_of(base, [ALIGN])
    k = tl.max_contiguous(tl.multiple_of(tl.arange(0, BK), [BK]), [BK])
    o = tl.max_contiguous(tl.multiple_of(o0 + tl.arange(0, BN), [BN]), [BN])
    blocks = CG // BK
    steps = KH * KW * blocks
    begin = part * steps // SPLIT
    end = (part + 1) * steps // SPLIT
    tap = begin // blocks
    c = begin % blocks * BK
    total = tl.zeros((BM, BN), tl.float32)
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    for step in range(begin, end):
        off = (tap // KW * WP + tap % KW) * CX + c
        if SLICES:
            off += tap % KW * CG
        off = tl.multiple_of(off, ALIGN)
        a = tl.load(x + off + base[:, None] + k[None, :])
        b = tl.load(w + (step * BK + k)[:, None] * O + o[None, :])
        total = tl.dot(a, b, total)
        c += BK
        tap = tl.where(c == CG, tap + 1, tap)
        c = tl.where(c == CG, 0, c)
    last = True
    if SPLIT > 1:
        total, last = last_sum(total, partial, count, tile, part, SPLIT, BM, BN)
    if last:
        at = tl.multiple_of(((n * HQ + h) * WQ + v) * O + Y0, [16])[:, None] + o[None, :]
        inside = (tile // down * BM + tl.arange(0, BM) < pixels)[:, None]
        if RESIDUAL:
            total += tl.load(residual + at, inside, 0.0)
        total = finished(total, bias, o0, BN, EPILOGUE)
        tl.store(y + at, total.to(y.dtype.element_ty), mask=inside)


@triton.jit
def first_step(
    x,  # descriptor [N, H, W, C], blocks [TN, TH, TW, BX]
    first,  # descriptor [KW * C, BZ], blocks [BX, BZ]
    y,  # descriptor [N, H, W, KW * Z], blocks [TN, TH, TW, BZ]
    H,
    W,
    C,
    KW: tl.constexpr,
    TN: tl.constexpr,
    TH: tl.constexpr,
    TW: tl.constexpr,
    BX: tl.constexpr,
    BZ: tl.constexpr,
):
    """The first step of Operator 1, which reads a tile once for all columns of the window."""
    blocks = C // BX
    tile = tl.program_id(0)
    block = tile % blocks
    n0, h0, w0 = place(tile // blocks, H, W, TN, TH, TW)
    a = x.load([n0, h0, w0, block * BX]).reshape(TN * TH * TW, BX)
    for q in tl.static_range(KW):
        z = tl.dot(a, first.load([q * C + block * BX, 0]))
        y.store([n0, h0, w0, (q * blocks + block) * BZ], z.to(y.dtype).reshape(TN, TH, TW, BZ))


@triton.jit
def depthwise(
    x,  # [N, H, W, C]
    w,  # [9, C]
    y,  # [N, H, W, C]
    H,
    W,
    C,
    ROWS: tl.constexpr,
    TW: tl.constexpr,
    BC: tl.constexpr,
):
    """A depthwise 3x3 convolution: goes down the rows and keeps the sums of three of them."""
    wide = tl.cdiv(W, TW)
    many = tl.cdiv(C, BC)
    tile = tl.program_id(0)
    c = tile % many * BC + tl.arange(0, BC)
    tile = tile // many
    column = tile % wide * TW + tl.arange(0, TW)
    tile = tile // wide
    strips = tl.cdiv(H, ROWS)
    h0 = tile % strips * ROWS
    n = tile // strips
    good = (c < C)[None, :]
    w00 = tl.load(w + 0 * C + c, c < C, 0.0).to(tl.float32)[None, :]
    w01 = tl.load(w + 1 * C + c, c < C, 0.0).to(tl.float32)[None, :]
    w02 = tl.load(w + 2 * C + c, c < C, 0.0).to(tl.float32)[None, :]
    w10 = tl.load(w + 3 * C + c, c < C, 0.0).to(tl.float32)[None, :]
    w11 = tl.load(w + 4 * C + c, c < C, 0.0).to(tl.float32)[None, :]
    w12 = tl.load(w + 5 * C + c, c < C, 0.0).to(tl.float32)[None, :]
    w20 = tl.load(w + 6 * C + c, c < C, 0.0).to(tl.float32)[None, :]
    w21 = tl.load(w + 7 * C + c, c < C, 0.0).to(tl.float32)[None, :]
    w22 = tl.load(w + 8 * C + c, c < C, 0.0).to(tl.float32)[None, :]
    above = tl.zeros((TW, BC), tl.float32)  # the row before this one, which lacks its last term
    here = tl.zeros((TW, BC), tl.float32)
    for step in range(ROWS + 2):
        h = h0 + step - 1 + tl.zeros((1, 1), tl.int32)
        inside = good & (h >= 0) & (h < H)
        at = ((n * H + h) * W + column[:, None]) * C + c[None, :]
        left = tl.load(x + at - C, inside & (column > 0)[:, None] & (column <= W)[:, None], 0.0).to(
            tl.float32
        )
        middle = tl.load(x + at, inside & (column < W)[:, None], 0.0).to(tl.float32)
        right = tl.load(x + at + C, inside & (column < W - 1)[:, None], 0.0).to(tl.float32)
        done = above + left * w20 + middle * w21 + right * w22
        above = here + left * w10 + middle * w11 + right * w12
        here = left * w00 + middle * w01 + right * w02
        written = good & (h > h0) & (h - 1 < H) & (column < W)[:, None]
        tl.store(
            y + ((n * H + h - 1) * W + column[:, None]) * C + c[None, :],
            done.to(y.dtype.element_ty),
            mask=written,
        )


@triton.jit
def enter(x, y, H, W, HP, WP, PAD: tl.constexpr, EARLY: tl.constexpr, BLOCK: tl.constexpr):
    """Images of three channels as [N, HP, WP, 4] with zeros around: a window's row is one run."""
    n = tl.program_id(0)
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[:, None]
    c = tl.arange(0, 4)[None, :]
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    inside = (pixel < H * W) & (c < 3)
    value = tl.load(x + (n * H * W + pixel) * 3 + c, inside, 0.0)
    tl.store(
        y + ((n * HP + pixel // W + PAD) * WP + pixel % W + PAD) * 4 + c, value, mask=pixel < H * W
    )


@triton.jit
def pool(x, y, bias, H, W, C: tl.constexpr, EARLY: tl.constexpr, BLOCK: tl.constexpr):
    """The largest of 3x3 values in steps of two, then bias and ReLU, which may as well go before.

    x: [N, 2 * H, 2 * W, C]; y: [N, H + 2, W + 2, C], its inside.
    """
    n = tl.program_id(0)
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[:, None]
    c = tl.arange(0, C)[None, :]
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    h = pixel // W
    v = pixel % W
    most = tl.full((BLOCK, C), float("-inf"), tl.float32)
    for a in tl.static_range(3):
        for b in tl.static_range(3):
            row = 2 * h + a - 1
            column = 2 * v + b - 1
            inside = (row >= 0) & (row < 2 * H) & (column >= 0) & (column < 2 * W) & (c < C)
            most = tl.maximum(
                most,
                tl.load(x + ((n * 2 * H + row) * 2 * W + column) * C + c, inside, float("-inf")).to(
                    tl.float32
                ),
            )
    most = tl.maximum(most + tl.load(bias + c), 0.0)
    tl.store(
        y + ((n * (H + 2) + h + 1) * (W + 2) + v + 1) * C + c,
        most.to(y.dtype.element_ty),
        mask=(pixel < H * W) & (c < C),
    )


@triton.jit
def classify(
    x,
    w,
    bias,
    y,
    H,
    W,
    O,
    C: tl.constexpr,
    P: tl.constexpr,
    EARLY: tl.constexpr,
    BO: tl.constexpr,
    BC: tl.constexpr,
):
    """Means over each map, then a linear layer.

    x: [N, H + 2, W + 2, C]; w: [O, C]; P: a power of two, at least H * W.
    """
    n = tl.program_id(0)
    o = tl.program_id(1) * BO + tl.arange(0, BO)
    p = tl.arange(0, P)[:, None]
    at = ((n * (H + 2) + p // W + 1) * (W + 2) + p % W + 1) * C
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    total = tl.zeros((BO,), tl.float32)
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        mean = tl.sum(tl.load(x + at + c[None, :], p < H * W, 0.0).to(tl.float32), 0) / (H * W)
        factor = tl.load(w + o[:, None] * C + c[None, :], (o < O)[:, None], 0.0).to(tl.float32)
        total += tl.sum(factor * mean[None, :], 1)
    tl.store(
        y + n * O + o, (total + tl.load(bias + o, o < O, 0.0)).to(y.dtype.element_ty), mask=o < O
    )
