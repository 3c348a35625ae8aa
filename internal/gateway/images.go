package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/limen-gateway/limen/internal/buffer"
	"github.com/limen-gateway/limen/internal/dialect"
	"github.com/limen-gateway/limen/internal/dialect/openai"
	"github.com/limen-gateway/limen/internal/limit"
	"github.com/limen-gateway/limen/internal/llm"
	"github.com/limen-gateway/limen/internal/route"
	"github.com/limen-gateway/limen/internal/tools"
	"github.com/limen-gateway/limen/internal/upstream"
)

// imageOperation names the calls that make images for tools, in records.
const imageOperation = "images"

// imageTarget is the model that makes images for a call, and nil when there is
// none that the client's key may use.
func (g *Gateway) imageTarget(c *Call) (*route.Model, *route.Target) {
	images := c.set.Tools.Images()
	if images == nil {
		return nil, nil
	}
	model := g.models.Table().Find(c.Key, images.Model)
	if model == nil {
		return nil, nil
	}
	for i := range model.Targets {
		speaks := model.Targets[i].Upstream.Speaks
		if slices.Contains(speaks, dialect.OpenAIChat) || slices.Contains(speaks, dialect.OpenAIResponses) {
			return model, &model.Targets[i] // which have the operation, if anybody has
		}
	}
	return nil, nil
}

// hasImages reports whether there is a model for images.
func (g *Gateway) hasImages(c *Call) bool {
	_, target := g.imageTarget(c)
	return target != nil
}

// paint makes an image for a tool of an attempt: a call of its own in the
// record, since another model works on it.
func (g *Gateway) paint(a *attempt) tools.Painter {
	return func(ctx context.Context, prompt llm.Raw, wish *llm.PictureWish, most int) (*llm.Media, error) {
		c := a.Call
		model, target := g.imageTarget(c)
		if target == nil {
			return nil, llm.Errorf(llm.NoModel, "There is no model for images any more.")
		}
		now := time.Now()
		own := &Call{
			requestID: newRequestID(now), Operation: imageOperation, Started: now, Dialect: c.Dialect, Key: c.Key,
			Request: dialect.Request{Model: c.set.Tools.Images().Model}, set: c.set, ctx: ctx, patience: c.patience, tags: c.tags,
			model:  model,
			meters: []*limit.Meter{model.Meter}, // those of the key count the call that wants the image
		}
		defer own.leave()
		own.at = own.preview(target, way{})
		g.metrics.Begin()
		image, err := g.image(own, a.provider, prompt, wish, most)
		if err != nil {
			own.Err = llm.AsError(err)
			own.Err.Message = target.Upstream.Redact(own.Err.Message)
		}
		if failed := g.account(own); failed != nil && err == nil {
			image, err = nil, failed
		}
		g.observe(own, time.Now())
		return image, err
	}
}

// image asks an attempt's target for an image. Where the call that wants it is
// in at the same provider it has its place there, since it sends nothing now.
func (g *Gateway) image(c *Call, within *limit.Gate, prompt llm.Raw, wish *llm.PictureWish, most int) (*llm.Media, error) {
	if err := g.pass(c, limit.Need{Input: inputOf(prompt), Output: mediaTokens}); err != nil {
		return nil, err
	}
	if err := g.affordImage(c, prompt); err != nil {
		return nil, err
	}
	a := c.at
	up := a.Target.Upstream
	if up.Gate != within {
		if err := g.enter(a.ctx, a.Call, up.Gate, 1, "provider", up.Name); err != nil {
			return nil, err
		}
		defer up.Gate.Leave(1)
	}
	image, err := a.imageAs(openai.ImageRequest(a.Target.Model, prompt, wish.Members, true), most)
	var refused *llm.Error
	if errors.As(err, &refused) && openai.RefusesInline(refused) {
		return a.imageAs(openai.ImageRequest(a.Target.Model, prompt, wish.Members, false), most)
	}
	return image, err
}

func (a *attempt) imageAs(request []byte, most int) (*llm.Media, error) {
	a.BytesIn = int64(len(request))
	body := upstream.NewBody([][]byte{request}, len(request), func() {})
	defer body.Done()
	resp, err := a.Target.Upstream.Post(a.ctx, openai.ImagesPath, body, false, nil)
	if err != nil {
		return nil, a.imageError(err)
	}
	defer resp.Body.Close()
	a.sent = true
	a.FirstByte = time.Since(a.Started)
	answer, err := readAll(resp.Body, resp.ContentLength, min(int64(most)+maxErrorBody, a.set.MaxAnswer), func(int) {})
	if err != nil {
		a.use(llm.Estimate(a.BytesIn, 0))
		return nil, a.imageError(err)
	}
	defer buffer.Put(answer)
	a.BytesOut = int64(len(*answer))
	if resp.StatusCode != http.StatusOK {
		return nil, openai.UpstreamError(resp.StatusCode, *answer, 0)
	}
	image, used, known, err := openai.ImageAnswer(*answer)
	if !known {
		used = llm.Estimate(a.BytesIn, 0)
	}
	a.use(used)
	return image, err
}

// imageError explains why there is no answer.
func (a *attempt) imageError(err error) error {
	switch {
	case errors.Is(context.Cause(a.ctx), context.DeadlineExceeded):
		return &llm.Error{Kind: llm.UpstreamTimeout, Message: "The upstream did not answer in time.", Err: err}
	case a.ctx.Err() != nil:
		return ended(a.ctx, err)
	case errors.Is(err, errOver):
		return &llm.Error{Kind: llm.UpstreamInvalid, Message: "The upstream's answer is larger than this gateway takes.", Err: err}
	}
	return &llm.Error{Kind: llm.Upstream, Message: "The upstream could not be reached, or broke off before it answered.", Err: fmt.Errorf("%s: %w", a.Target.Upstream.Name, err)}
}
